// Questions to a child process: answers, and children that end, hang, or do not start.
#include "runtime/worker_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "stax/error.h"

namespace stax::runtime {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

std::string failure(WorkerProcess& worker, milliseconds limit) {
  try {
    worker.ask("question", limit);
  } catch (const RuntimeError& error) {
    return error.what();
  }
  return "an answer";
}

TEST(WorkerProcess, AnswersLineByLine) {
  WorkerProcess worker({"cat"}, {});
  const std::string large(300'000, 'x');  // more than a socket holds
  EXPECT_EQ(worker.ask("one", milliseconds(20'000)), "one");
  EXPECT_EQ(worker.ask("", milliseconds(20'000)), "");
  EXPECT_EQ(worker.ask("three", milliseconds(20'000)), "three");
  WorkerProcess reader({"/bin/sh", "-c", "while read -r line; do echo ${#line}; done"}, {});
  EXPECT_EQ(reader.ask(large, milliseconds(20'000)), "300000");
}

TEST(WorkerProcess, GetsTheChangedEnvironment) {
  WorkerProcess worker({"/bin/sh", "-c", "read -r line; echo $STAX_WORKER_TEST"}, {"STAX_WORKER_TEST=value"});
  EXPECT_EQ(worker.ask("?", milliseconds(20'000)), "value");
}

TEST(WorkerProcess, SaysWhatAnEndedWorkerWrote) {
  WorkerProcess worker({"/bin/sh", "-c", "echo out of order >&2; exit 3"}, {});
  EXPECT_THAT(failure(worker, milliseconds(20'000)),
              AllOf(HasSubstr("/bin/sh has ended with exit status 3"), HasSubstr("out of order")));
  EXPECT_FALSE(worker.alive());
  WorkerProcess killed({"/bin/sh", "-c", "kill -9 $$"}, {});
  EXPECT_THAT(failure(killed, milliseconds(20'000)), HasSubstr("was ended by signal 9"));
}

TEST(WorkerProcess, BelongsToTheProcessThatStartedIt) {
  auto worker = std::make_unique<WorkerProcess>(std::vector<std::string>{"cat"}, std::vector<std::string>{});
  EXPECT_TRUE(worker->is_own());
  const pid_t child = fork();
  if (child == 0) {
    const bool own = worker->is_own();
    worker.reset();  // ends nothing
    _exit(own ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(worker->ask("still there", milliseconds(20'000)), "still there");
}

TEST(WorkerProcess, EndsOneThatHangs) {
  WorkerProcess worker({"sleep", "1000"}, {});
  EXPECT_THAT(failure(worker, milliseconds(100)), HasSubstr("does not answer in time"));
  EXPECT_FALSE(worker.alive());
}

TEST(WorkerProcess, NamesAProgramThatThereIsNot) {
  try {
    WorkerProcess worker({"/no/such/program"}, {});
    FAIL() << "it started";
  } catch (const RuntimeError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot start /no/such/program"));
  }
}

}  // namespace
}  // namespace stax::runtime
