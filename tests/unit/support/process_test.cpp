#include "support/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "support/file.h"

namespace stax {
namespace {

TEST(Process, GuardedChildrenEndWithAKilledParent) {
  const TemporaryFolder folder(temporary_root(), "stax-test-");
  const std::string path = folder.path() + "/group";
  const pid_t parent = fork();
  if (parent == 0) {
    guard_children();
    const std::vector<std::string> quick{"/bin/true"};
    run_process(quick);
    run_process(
        {"/bin/sh", "-c", "sleep 120 & echo $$ > " + path + ".new; mv " + path + ".new " + path + "; wait"});
    _exit(0);
  }
  for (int i = 0; i < 20000 && access(path.c_str(), F_OK) != 0; ++i) usleep(1000);
  const auto text = read_file(path);
  ASSERT_TRUE(text.has_value());
  const pid_t group = std::atoi(text->c_str());
  ASSERT_EQ(kill(-group, 0), 0);
  kill(parent, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(parent, &status, 0), parent);
  bool gone = false;
  for (int i = 0; i < 20000 && !gone; ++i) {
    const auto state = read_file("/proc/" + std::to_string(group) + "/stat");
    gone = !state || state->find(") Z") != std::string::npos;  // a corpse waits for whoever buries orphans
    if (!gone) usleep(1000);
  }
  EXPECT_TRUE(gone);
}

}  // namespace
}  // namespace stax
