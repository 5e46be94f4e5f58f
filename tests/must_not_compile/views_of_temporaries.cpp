// SPDX-License-Identifier: Apache-2.0
// Compiled by run.cmake next to it: without FORBIDDEN it must compile, and with it the compiler
// must refuse each line that says so, because the function is deleted.
#include <optional>
#include <precache/reader.hpp>
#include <precache/reader/device_loader.hpp>
#include <string>
#include <type_traits>

using namespace precache;

void use(const Dataset& dataset, Loader& loader, DeviceLoader& device_loader) {
  const Sample sample = dataset[0];
  const Rows rows = dataset.rows(0, 2);
  const Batch batch = *loader.next();
  const DeviceBatch device_batch = *device_loader.next();
  (void)sample.bytes();
  (void)sample.as<float>();
  (void)sample.column_bytes("age");
  (void)rows.data();
  (void)rows[0];
  (void)rows.as<float>();
  (void)batch.data();
  (void)batch[0];
  (void)batch.as<float>();
  (void)batch.labels();
  (void)batch.samples();
  (void)batch.view(0);
  (void)batch.columns();
  (void)batch.column<float>("age");
  (void)batch.column_bytes(0);
  (void)batch.repeats();
  (void)device_batch.images();
  (void)device_batch.view_images(0);
  (void)device_batch.as<float>();
  (void)device_batch.labels();
  (void)device_batch.samples();
  (void)device_batch.ready_event();
  (void)dataset.columns();
  (void)loader.columns();
  (void)dataset[0].label();                    // a value
  (void)dataset[0].lease();                    // which keeps the mapping
  (void)Dataset::open("folder").classes()[0];  // of a copy
  static_assert(std::is_same_v<decltype(Dataset::open("folder").recipe().text()), std::string>);
  static_assert(std::is_same_v<decltype(Dataset::open("folder").recipe().to_json()), std::string>);
  static_assert(std::is_same_v<decltype(Dataset::open("folder").recipe().problem()), std::string>);
  static_assert(std::is_same_v<decltype(Dataset::open("folder").recipe().normalization()),
                               std::optional<Normalization>>);
#ifdef FORBIDDEN
  (void)dataset[0].bytes();                           // must not compile
  (void)dataset[0].as<float>();                       // must not compile
  (void)dataset[0].column_bytes("age");               // must not compile
  (void)Dataset::open("folder").columns();            // must not compile
  (void)dataset.rows(0, 2).data();                    // must not compile
  (void)dataset.rows(0, 2)[0];                        // must not compile
  (void)dataset.rows(0, 2).as<float>();               // must not compile
  (void)(*loader.next()).data();                      // must not compile
  (void)(*loader.next())[0];                          // must not compile
  (void)loader.next().value().as<float>();            // must not compile
  (void)loader.next().value().labels();               // must not compile
  (void)loader.next().value().samples();              // must not compile
  (void)loader.next().value().view(0);                // must not compile
  (void)loader.next().value().columns();              // must not compile
  (void)loader.next().value().column<float>("age");   // must not compile
  (void)loader.next().value().column_bytes(0);        // must not compile
  (void)loader.next().value().repeats();              // must not compile
  (void)Loader(dataset).columns();                    // must not compile
  (void)device_loader.next().value().images();        // must not compile
  (void)device_loader.next().value().view_images(0);  // must not compile
  (void)device_loader.next().value().as<float>();     // must not compile
  (void)device_loader.next().value().labels();        // must not compile
  (void)device_loader.next().value().samples();       // must not compile
  (void)device_loader.next().value().ready_event();   // must not compile
#endif
}
