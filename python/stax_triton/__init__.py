"""What generated Triton kernels need: decorators, helper functions, and the workers that compile and interpret them.

Generated files import from stax_triton.runtime. The package needs Triton, and NumPy to interpret; no GPU.
"""
