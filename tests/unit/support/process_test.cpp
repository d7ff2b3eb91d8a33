#include "support/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

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

/// Forks a process whose thread forks another, which writes its number and waits; the thread ends.
pid_t start_family(int numbers, int stop) {
  const pid_t parent = fork();
  if (parent != 0) return parent;
  const pid_t self = getpid();
  std::thread([&] {
    if (fork() != 0) return;
    close(stop);
    end_with_parent(self);
    const pid_t number = getpid();
    if (write(numbers, &number, sizeof number) != sizeof number) _exit(1);
    for (;;) pause();
  }).join();
  close(numbers);
  char none;
  while (read(stop, &none, 1) > 0) continue;
  _exit(0);
}

TEST(Process, ForkedProcessesOutliveTheThreadThatForkedThemButNotItsProcess) {
  int numbers[2], stop[2];
  ASSERT_EQ(pipe2(numbers, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(stop, O_CLOEXEC), 0);
  const pid_t parent = start_family(numbers[1], stop[0]);
  close(numbers[1]);
  close(stop[0]);
  pid_t child = 0;
  ASSERT_EQ(read(numbers[0], &child, sizeof child), ssize_t{sizeof child});
  pollfd end{numbers[0], POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, 1500), 0) << "it ended with the thread";
  kill(parent, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(parent, &status, 0), parent);
  EXPECT_EQ(poll(&end, 1, 20'000), 1) << "it outlives its parent";
  kill(child, SIGKILL);
  close(numbers[0]);
  close(stop[1]);
}

}  // namespace
}  // namespace stax
