// Where a tensor's data lies.
#pragma once

#include <cstdint>
#include <string>

namespace stax {

enum class DeviceType : uint8_t { cpu, cuda };

struct Device {
  DeviceType type = DeviceType::cpu;
  int8_t index = 0;  // 0 for the CPU
  std::string str() const { return type == DeviceType::cpu ? "cpu" : "cuda:" + std::to_string(index); }
  friend bool operator==(Device, Device) = default;
};

inline constexpr Device kCPU{};
/// The first GPU.
inline constexpr Device kCUDA{DeviceType::cuda, 0};

}  // namespace stax
