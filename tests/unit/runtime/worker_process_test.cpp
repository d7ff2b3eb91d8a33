// Questions to a child process: answers, and children that end, hang, or do not start.
#include "runtime/worker_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
              AllOf(HasSubstr("/bin/sh has ended"), HasSubstr("out of order")));
  EXPECT_FALSE(worker.alive());
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
