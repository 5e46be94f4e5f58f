// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "convert/source/source.hpp"
#include "precache/formats/named_column.hpp"

namespace precache {

/// The names of the typed columns of the CSV file in `labelling`, if it names one. Throws IoError
/// and InvalidArgument.
[[nodiscard]] std::vector<std::string> csv_target_names(const Labelling& labelling);

/// Reads the typed columns of the CSV file in `labelling`, if it names one that has some, and adds
/// their values to the samples of a source that was listed with it.
///
/// `known`: the columns of other splits; a column of names has the classes that it has there, and
/// otherwise those that occur, sorted. Throws InvalidArgument with file, line and column for a
/// value that is not of its type, and IoError.
void add_csv_targets(Source& source, const Labelling& labelling, const std::filesystem::path& root,
                     const std::vector<NamedColumn>& known);

}  // namespace precache
