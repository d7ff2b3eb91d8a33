#include "support/log.h"

#include <gtest/gtest.h>

namespace stax::log {
namespace {

uint32_t bit(Channel channel) {
  return 1u << static_cast<int>(channel);
}

TEST(Log, ParsesListsOfChannels) {
  EXPECT_EQ(parse_channels(""), 0u);
  EXPECT_EQ(parse_channels("recompiles"), bit(Channel::recompiles));
  EXPECT_EQ(parse_channels("kernels,,fusion"), bit(Channel::kernels) | bit(Channel::fusion));
  for (const Channel c : {Channel::recompiles, Channel::guards, Channel::fusion, Channel::kernels}) {
    EXPECT_NE(parse_channels("all") & bit(c), 0u);
  }
}

TEST(Log, NamesWhatIsNoChannel) {
  std::string unknown;
  EXPECT_EQ(parse_channels("kernel,guards,kernels ", &unknown), bit(Channel::guards));
  EXPECT_EQ(unknown, "'kernel', 'kernels '");
}

}  // namespace
}  // namespace stax::log
