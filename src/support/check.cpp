#include "support/check.h"

namespace stax {

void throw_user_error(std::string message) {
  throw UserError(message);
}
void throw_runtime_error(std::string message) {
  throw RuntimeError(message);
}
void throw_internal_error(const char* file, int line, const char* condition, std::string message) {
  throw InternalError(fmt::format("internal error at {}:{}: {} (condition failed: {}); please report it",
                                  file, line, message, condition));
}

}  // namespace stax
