"""What generated Triton kernels need: decorators, helper functions, and the worker that compiles them.

Generated files import from stax_triton.runtime. The package needs Triton and NumPy, and no GPU.
"""
