// What the project promises about speed, in one run: ratios on this machine, through the public interface.
//
//   bench_suite          a Markdown table
//   bench_suite --json   the same as JSON
//   bench_suite --quick  inputs of 4M instead of 64M elements: only to see that it runs
#include <unistd.h>

#include <filesystem>

#include "bench/harness.h"
#include "bench/program.h"
#include "compiler/batch.h"
#include "compiler/pipeline.h"
#include "stax/stax.h"
#include "support/json.h"
#include "support/plural.h"
#include "support/process.h"

namespace {

using stax::Tensor;

/// A line of the table: what was measured, what it is compared with, the figure, and the goal.
struct Row {
  std::string what, measured, against, figure, goal;
  double value = 0;
  bool met = false;
};

class Suite {
 public:
  Suite(int64_t elements, int threads) : columns_(1024), rows_(elements / 1024), threads_(threads) {}

  void run() {
    large();
    eager();
    calls();
    dispatch();
    first_calls();
  }
  const std::vector<Row>& rows() const { return table_; }

 private:
  /// Share of a parallel copy's bandwidth that `f` reaches with `bytes` read and written.
  void against_copy(const std::string& what, size_t bytes, double goal, const std::function<void()>& f) {
    bench::ParallelCopy copy(bytes);
    const bench::Comparison c = bench::compare(f, [&] { copy.run(); }, {.rounds = 11});
    const double share = 1 / c.ratio;
    table_.push_back({what, bench::format_seconds(c.a), bench::format_seconds(c.b) + " copy",
                      fmt::format("{:.0f} % of copy bandwidth", 100 * share),
                      fmt::format(">= {:.0f} %", 100 * goal), share, share >= goal});
    progress();
  }

  /// The same for what only reads `input`: it is held against a plain read of the same bytes, too, and the
  /// goal is met if the machine cannot read as fast as it copies.
  void against_read(const std::string& what, const Tensor& input, double goal,
                    const std::function<void()>& f) {
    const auto bytes = static_cast<size_t>(input.numel()) * 4;
    bench::ParallelCopy copy(bytes);
    bench::ParallelRead read(input.data_ptr(), bytes);
    const bench::Comparison c = bench::compare(f, [&] { copy.run(); }, {.rounds = 11});
    const bench::Comparison r = bench::compare(f, [&] { read.run(); }, {.rounds = 11});
    const double of_copy = 1 / c.ratio, of_read = 1 / r.ratio;
    table_.push_back(
        {what, bench::format_seconds(c.a),
         fmt::format("{} copy, {} read", bench::format_seconds(c.b), bench::format_seconds(r.b)),
         fmt::format("{:.0f} % of copy, {:.0f} % of read bandwidth", 100 * of_copy, 100 * of_read),
         fmt::format(">= {:.0f} % of copy or 97 % of read", 100 * goal), of_copy,
         of_copy >= goal || of_read >= 0.97});
    progress();
  }

  void at_most(const std::string& what, double seconds, const std::string& against, double goal) {
    table_.push_back({what, bench::format_seconds(seconds), against, bench::format_seconds(seconds),
                      "<= " + bench::format_seconds(goal), seconds, seconds <= goal});
    progress();
  }

  void progress() const {
    std::fprintf(stderr, "%s: %s\n", table_.back().what.c_str(), table_.back().figure.c_str());
  }

  static Tensor chain(const Tensor& x, const Tensor& y, int operators) {
    Tensor v = x;
    for (int k = 0; k < operators; ++k) {
      const Tensor& other = k % 2 == 0 ? y : x;
      v = k % 3 == 0 ? v + other : k % 3 == 1 ? v * other : stax::maximum(v, other);
    }
    return v;
  }

  /// Compiled functions over inputs far larger than the caches.
  void large() {
    const auto size = static_cast<size_t>(rows_ * columns_) * 4;
    const Tensor x = stax::rand({rows_, columns_}), y = stax::rand({rows_, columns_});
    const Tensor weight = stax::rand({columns_}), bias = stax::rand({columns_});
    auto fused = stax::compile([](const Tensor& a, const Tensor& b) { return stax::relu(a + b) * 2; });
    auto sums = stax::compile([](const Tensor& a) { return a.sum(-1); });
    auto column_sums = stax::compile([](const Tensor& a) { return a.sum(0); });
    auto softmax = stax::compile([](const Tensor& a) { return stax::softmax(a, -1); });
    auto norm = stax::compile([](const Tensor& a, const Tensor& w, const Tensor& b) {
      return stax::layer_norm(a, {w.size(0)}, w, b);
    });
    against_copy("relu(x + y) * 2", 3 * size, 0.85, [&] { (void)fused(x, y); });
    against_read("sums of rows", x, 0.85, [&] { (void)sums(x); });
    const Tensor square = x.view({-1, columns_ * 8});
    against_read("sums of columns", square, 0.85, [&] { (void)column_sums(square); });
    against_copy("softmax of rows", 2 * size, 0.85, [&] { (void)softmax(x); });
    against_copy("layer_norm of rows", 2 * size, 0.85, [&] { (void)norm(x, weight, bias); });
    auto all = stax::compile([](const Tensor& a) { return a.sum(); });
    against_read("sum of everything", x, 0.85, [&] { (void)all(x); });
    auto one = stax::compile([](const Tensor& a, const Tensor& b) { return chain(a, b, 1); });
    auto many = stax::compile([](const Tensor& a, const Tensor& b) { return chain(a, b, 20); });
    const bench::Comparison c =
        bench::compare([&] { (void)many(x, y); }, [&] { (void)one(x, y); }, {.rounds = 11});
    table_.push_back({"20 additions, products and maxima, against one", bench::format_seconds(c.a),
                      bench::format_seconds(c.b), fmt::format("{:.2f} times one operator", c.ratio),
                      "<= 1.10", c.ratio, c.ratio <= 1.1});
    progress();
  }

  void eager() {
    const auto size = static_cast<size_t>(rows_ * columns_) * 4;
    const Tensor large = stax::rand({rows_, columns_});
    against_copy("eager: large x + 1", 2 * size, 0.6, [&] { (void)(large + 1); });
    const Tensor a = stax::rand({4, 8}), b = stax::rand({4, 8});
    at_most("eager: small a + b", bench::measure([&] { (void)(a + b); }), "", 3e-6);
    at_most("eager: small a.sum(-1)", bench::measure([&] { (void)a.sum(-1); }), "", 3e-6);
  }

  /// What a compiled call costs above its kernel.
  void calls() {
    const Tensor x = stax::rand({64, 128}), y = stax::rand({64, 128});
    auto compiled = stax::compile([](const Tensor& a, const Tensor& b) { return stax::relu(a + b); });
    bench::Program kernel(
        "buffer in0 float32 [64, 128] input\nbuffer in1 float32 [64, 128] input\n"
        "buffer out0 float32 [64, 128] output\nnode op0 \"relu\" [i0 < 8192]\n  v0 = load float32 in0[i0]\n"
        "  v1 = load float32 in1[i0]\n  v2 = add float32 v0 v1\n  v3 = relu float32 v2\n  store out0[i0] "
        "v3\n",
        threads_);
    const bench::Comparison c =
        bench::compare([&] { (void)compiled(x, y); }, [&] { kernel.run(); }, {.rounds = 31});
    const double above = std::max(0.0, c.a - c.b);
    table_.push_back({"a compiled call on 64x128, above its kernel", bench::format_seconds(c.a),
                      bench::format_seconds(c.b) + " kernel", bench::format_seconds(above), "<= 1 us", above,
                      above <= 1e-6});
    progress();
  }

  /// What finding an artifact costs where eight are there for the sizes of their ranges, and the last one
  /// fits: a call less a run of its program.
  void dispatch() {
    const auto sum = [](const std::vector<Tensor>& all) {
      Tensor total = all[0];
      for (size_t k = 1; k < all.size(); ++k) total = total + all[k];
      for (int64_t edge = 10; edge < 80; edge += 10) {
        if (all[0].size(0) > edge) total = total + 1;
      }
      return total;
    };
    for (const size_t count : {1, 4, 8, 16}) {
      const auto inputs = [&](int64_t rows) {
        std::vector<Tensor> all;
        for (size_t k = 0; k < count; ++k) all.push_back(stax::rand({rows, 4}));
        return all;
      };
      auto compiled = stax::compile(sum, {.dynamic = true});
      for (int64_t rows = 5; rows < 80; rows += 10) (void)compiled(inputs(rows));
      const std::vector<Tensor> last = inputs(75);
      std::vector<stax::capture::Captured> captured;
      captured.push_back(stax::compiler::trace_function(
          [&](const std::vector<Tensor>& all) { return std::vector<Tensor>{sum(all)}; }, last,
          {.dynamic = true}));
      const auto program = stax::compiler::compile_batch(std::move(captured)).at(0).program;
      const auto symbols = stax::compiler::symbols_of(stax::compiler::Guards(program->captured()), last);
      std::vector<const Tensor*> pointers;
      for (const Tensor& t : last) pointers.push_back(&t);
      const auto run = [&] {
        Tensor result;
        program->run(pointers, {}, &result, *symbols);
      };
      const bench::Comparison c = bench::compare([&] { (void)compiled(last); }, run, {.rounds = 31});
      const double above = std::max(0.0, c.a - c.b), goal = 1e-6 + 15e-9 * (count > 4 ? count - 4.0 : 0.0);
      const size_t artifacts = compiled.artifacts().size();
      table_.push_back(
          {fmt::format("finding the last of {} artifacts, {}", artifacts, stax::counted(count, "input")),
           bench::format_seconds(c.a), bench::format_seconds(c.b) + " its run", bench::format_seconds(above),
           "<= " + bench::format_seconds(goal), above, above <= goal && artifacts == 8});
      progress();
    }
  }

  /// The first call of a one-kernel function in new processes, with an empty and with a filled cache.
  void first_calls() {
    namespace fs = std::filesystem;
    const std::string root = (fs::temp_directory_path() / fmt::format("stax-bench-{}", getpid())).string();
    std::vector<double> cold, own, cached;
    for (int round = 0; round < 9; ++round) {
      const std::string folder = fmt::format("{}/{}", root, round);
      fs::create_directories(folder);
      fs::permissions(folder, fs::perms::owner_all);
      setenv("STAX_CACHE_DIR", folder.c_str(), 1);
      const FirstCall first = first_call();
      cold.push_back(first.seconds);
      own.push_back(first.seconds - first.host_compiler);
      for (int again = 0; again < 3; ++again) cached.push_back(first_call().seconds);
    }
    fs::remove_all(root);
    at_most("first call of softmax, nothing cached", bench::median(cold), "", 0.15);
    // Op table, capture, passes, scheduling, printing, files, loading, running: all but the compiler.
    at_most("the same, Stax's own share", bench::median(own), "", 0.005);
    at_most("the same in a new process, kernel cached", bench::median(cached), "", 0.01);
  }

  struct FirstCall {
    double seconds = 0, host_compiler = 0;
  };
  static FirstCall first_call() {
    const stax::ProcessResult result = stax::run_process({"/proc/self/exe", "--first-call"});
    if (!result.ok()) throw std::runtime_error("the first call failed: " + result.errors);
    size_t end = 0;
    const double seconds = std::stod(result.output, &end);
    return {seconds, std::stod(result.output.substr(end))};
  }

  int64_t columns_, rows_;
  int threads_;
  std::vector<Row> table_;
};

/// Seconds of the first call, and those of them in which the host compiler ran. Nothing of Stax ran before:
/// the input is plain memory.
void print_first_call() {
  std::vector<float> values(64 * 128, 0.5f);
  const Tensor x = stax::from_blob(values.data(), {64, 128});
  auto softmax = stax::compile([](const Tensor& a) { return stax::softmax(a, -1); });
  const double seconds = bench::time_calls([&] { (void)softmax(x); }, 1);
  fmt::print("{} {}\n", seconds, stax::compiler::host_compiler().compiler_time().count());
}

void print_markdown(const bench::Machine& machine, const std::vector<Row>& rows) {
  fmt::print("{}, {} threads; medians of alternating runs\n\n", machine.cpu, machine.threads);
  fmt::print("| | measured | against | result | goal | |\n| --- | ---: | ---: | ---: | ---: | --- |\n");
  for (const Row& r : rows)
    fmt::print("| {} | {} | {} | {} | {} | {} |\n", r.what, r.measured, r.against, r.figure, r.goal,
               r.met ? "met" : "missed");
}

void print_json(const bench::Machine& machine, const std::vector<Row>& rows) {
  stax::Json whole = stax::Json::object(), list = stax::Json::array();
  for (const Row& r : rows) {
    stax::Json row = stax::Json::object();
    row.set("what", r.what);
    row.set("measured", r.measured);
    row.set("against", r.against);
    row.set("value", r.value);
    row.set("goal", r.goal);
    row.set("met", r.met);
    list.push_back(std::move(row));
  }
  whole.set("cpu", machine.cpu);
  whole.set("threads", machine.threads);
  whole.set("rows", std::move(list));
  fmt::print("{}\n", whole.dump());
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false;
  int64_t elements = int64_t{1} << 26;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--first-call") return print_first_call(), 0;
    if (word == "--quick") {
      elements = int64_t{1} << 22;
    } else if (word == "--json") {
      json = true;
    } else {
      fmt::print(stderr, "bench_suite: unknown option {}; there are --json and --quick\n", word);
      return 2;
    }
  }
  const bench::Machine machine = bench::this_machine();
  Suite suite(elements, machine.threads);
  suite.run();
  json ? print_json(machine, suite.rows()) : print_markdown(machine, suite.rows());
}
