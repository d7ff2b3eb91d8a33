// Marks what the library exports; everything else stays hidden.
#pragma once

#if defined(_WIN32)
#define STAX_API
#else
#define STAX_API __attribute__((visibility("default")))
#endif
