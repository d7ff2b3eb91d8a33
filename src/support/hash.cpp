#include "support/hash.h"

#include <openssl/evp.h>

#include "support/check.h"

namespace stax {

std::array<uint8_t, 32> sha256(std::string_view bytes) {
  std::array<uint8_t, 32> digest;
  unsigned length = 0;
  const int ok = EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr);
  STAX_RUNTIME_CHECK(
      ok == 1 && length == digest.size(),
      "OpenSSL cannot compute SHA-256 here; check that libcrypto's default provider is enabled");
  return digest;
}

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
