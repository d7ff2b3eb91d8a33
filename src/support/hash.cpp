#include "support/hash.h"

#include <openssl/sha.h>

namespace stax {

// OpenSSL's own interface to digests (EVP) loads its configuration and providers at the first call, which
// takes a millisecond of every process. The functions below it compute at once, with the same code.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
std::array<uint8_t, 32> sha256(std::string_view bytes) {
  std::array<uint8_t, 32> digest;
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, bytes.data(), bytes.size());
  SHA256_Final(digest.data(), &context);
  return digest;
}
#pragma GCC diagnostic pop

std::string sha256_hex(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : sha256(bytes)) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace stax
