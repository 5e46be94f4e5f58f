// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/angles.hpp"

#include <cmath>
#include <random>

#include "tests/support/catch.hpp"

namespace precache::augment {
namespace {

struct Known {
  double (*function)(double);
  double argument;
  double result;
};

double sine(double x) { return sine_cosine(x).sine; }
double cosine(double x) { return sine_cosine(x).cosine; }

// mpmath with 200 bits, rounded to a double.
constexpr Known kKnown[] = {
    {sine, 0.3, 0x1.2e9cd95baba33p-2},
    {sine, 0x1.26e40d7653223p-1, 0x1.16daed770771dp-1},
    {sine, -0x1.2d97c7f3321d2p+1, -0x1.6a09e667f3bcdp-1},
    {sine, 6.2, -0x1.54558dbbecd1dp-4},
    {sine, 1e5, 0x1.24daa9c527e96p-5},
    {cosine, 0.3, 0x1.e921dd42f09bap-1},
    {cosine, 0x1.26e40d7653223p-1, 0x1.ad663a8ae2fdcp-1},
    {cosine, -0x1.2d97c7f3321d2p+1, -0x1.6a09e667f3bccp-1},
    {cosine, 6.2, 0x1.fe3ac4079a9cep-1},
    {cosine, 1e5, -0x1.ffac3841b3da7p-1},
    {tangent, 0.3, 0x1.3cc2a44e29998p-2},
    {tangent, 0x1.26e40d7653223p-1, 0x1.4c7f26ed1d60fp-1},
    {tangent, -0x1.2d97c7f3321d2p+1, 0x1.0000000000001p+0},
    {tangent, 6.2, -0x1.5583dee907af9p-4},
    {tangent, 1e5, -0x1.250a9d503313dp-5},
    {arc_tangent, 0.3, 0x1.2a73a661eaf06p-2},
    {arc_tangent, 0.033, 0x1.0e3ce91e43043p-5},
    {arc_tangent, 0.99, 0x1.8f8d0f7321467p-1},
    {arc_tangent, -1, -0x1.921fb54442d18p-1},
    {sine, 0, 0},
};

TEST_CASE("functions of angles are rounded once", "[reader][augment][golden]") {
  for (const Known& known : kKnown) {
    CAPTURE(&known - kKnown, known.argument);
    CHECK(known.function(known.argument) == known.result);
  }
}

TEST_CASE("functions of angles agree with the C library but for the last bit",
          "[reader][augment]") {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> angles(-10, 10);
  const auto check = [](double got, double library) {
    REQUIRE(std::fabs(got - library) <= std::fabs(library) * 0x1p-52);
  };
  for (int i = 0; i < 5000; ++i) {
    const double x = angles(random);
    CAPTURE(x);
    check(sine(x), std::sin(x));
    check(cosine(x), std::cos(x));
    check(tangent(x), std::tan(x));
    check(arc_tangent(x / 10), std::atan(x / 10));
  }
}

}  // namespace
}  // namespace precache::augment
