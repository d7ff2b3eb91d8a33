#include <mutex>

#include "stax/random.h"

namespace stax {

struct Generator::State {
  mutable std::mutex mutex;
  uint64_t seed = 0, offset = 0;
};

Generator::Generator(uint64_t seed) : state_(new State()) {
  state_->seed = seed;
}

Generator::Generator(const Generator& other) : state_(new State()) {
  const std::lock_guard lock(other.state_->mutex);
  state_->seed = other.state_->seed;
  state_->offset = other.state_->offset;
}

Generator& Generator::operator=(const Generator& other) {
  if (this == &other) return *this;
  const std::scoped_lock lock(state_->mutex, other.state_->mutex);
  state_->seed = other.state_->seed;
  state_->offset = other.state_->offset;
  return *this;
}

Generator::~Generator() {
  delete state_;
}

void Generator::manual_seed(uint64_t seed) {
  const std::lock_guard lock(state_->mutex);
  state_->seed = seed;
  state_->offset = 0;
}

uint64_t Generator::seed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->seed;
}

uint64_t Generator::offset() const {
  const std::lock_guard lock(state_->mutex);
  return state_->offset;
}

void Generator::set_offset(uint64_t offset) {
  const std::lock_guard lock(state_->mutex);
  state_->offset = offset;
}

std::pair<uint64_t, uint64_t> Generator::draw(uint64_t count) {
  const std::lock_guard lock(state_->mutex);
  const uint64_t first = state_->offset;
  state_->offset += count;
  return {state_->seed, first};
}

Generator& default_generator() {
  static Generator generator;
  return generator;
}

Generator& manual_seed(uint64_t seed) {
  default_generator().manual_seed(seed);
  return default_generator();
}

}  // namespace stax
