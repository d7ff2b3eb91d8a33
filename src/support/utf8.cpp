#include "support/utf8.h"

#include <cstddef>

namespace stax {
namespace {

// One row of RFC 3629's syntax: lead bytes, how many bytes follow, and what the first of them may be.
struct Form {
  unsigned char lead_low, lead_high;
  int following;
  unsigned char second_low, second_high;
};

constexpr Form kForms[] = {
    {0x00, 0x7f, 0, 0, 0},       {0xc2, 0xdf, 1, 0x80, 0xbf}, {0xe0, 0xe0, 2, 0xa0, 0xbf},
    {0xe1, 0xec, 2, 0x80, 0xbf}, {0xed, 0xed, 2, 0x80, 0x9f}, {0xee, 0xef, 2, 0x80, 0xbf},
    {0xf0, 0xf0, 3, 0x90, 0xbf}, {0xf1, 0xf3, 3, 0x80, 0xbf}, {0xf4, 0xf4, 3, 0x80, 0x8f},
};

const Form* form_of(unsigned char lead) {
  for (const Form& form : kForms) {
    if (lead >= form.lead_low && lead <= form.lead_high) return &form;
  }
  return nullptr;
}

}  // namespace

bool is_valid_utf8(std::string_view bytes) {
  size_t i = 0;
  while (i < bytes.size()) {
    const Form* form = form_of(static_cast<unsigned char>(bytes[i]));
    if (form == nullptr || bytes.size() - i <= static_cast<size_t>(form->following)) return false;
    for (int k = 1; k <= form->following; ++k) {
      const auto byte = static_cast<unsigned char>(bytes[i + k]);
      const unsigned char low = k == 1 ? form->second_low : 0x80;
      const unsigned char high = k == 1 ? form->second_high : 0xbf;
      if (byte < low || byte > high) return false;
    }
    i += 1 + form->following;
  }
  return true;
}

}  // namespace stax
