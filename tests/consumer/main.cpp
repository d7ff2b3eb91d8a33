#include <stax/error.h>

#include <iostream>

int main() {
  try {
    throw stax::UserError("caught");
  } catch (const stax::Error& error) {
    std::cout << error.what() << "\n";
  }
}
