// SPDX-License-Identifier: Apache-2.0
// Compiled by run.cmake next to it: without FORBIDDEN it must compile, and with it the compiler
// must refuse each line that says so, because the function is deleted.
#include <precache/reader.hpp>
#include <precache/reader/device_loader.hpp>

using namespace precache;

void use(const Dataset& dataset, Loader& loader, DeviceLoader& device_loader) {
  const Sample sample = dataset[0];
  const Rows rows = dataset.rows(0, 2);
  const Batch batch = *loader.next();
  const DeviceBatch device_batch = *device_loader.next();
  (void)sample.bytes();
  (void)sample.as<float>();
  (void)rows.data();
  (void)rows[0];
  (void)rows.as<float>();
  (void)batch.data();
  (void)batch[0];
  (void)batch.as<float>();
  (void)batch.labels();
  (void)batch.samples();
  (void)device_batch.images();
  (void)device_batch.as<float>();
  (void)device_batch.labels();
  (void)device_batch.samples();
  (void)device_batch.ready_event();
  (void)dataset[0].label();                    // a value
  (void)dataset[0].lease();                    // which keeps the mapping
  (void)Dataset::open("folder").classes()[0];  // of a copy
#ifdef FORBIDDEN
  (void)dataset[0].bytes();                          // must not compile
  (void)dataset[0].as<float>();                      // must not compile
  (void)dataset.rows(0, 2).data();                   // must not compile
  (void)dataset.rows(0, 2)[0];                       // must not compile
  (void)dataset.rows(0, 2).as<float>();              // must not compile
  (void)(*loader.next()).data();                     // must not compile
  (void)(*loader.next())[0];                         // must not compile
  (void)loader.next().value().as<float>();           // must not compile
  (void)loader.next().value().labels();              // must not compile
  (void)loader.next().value().samples();             // must not compile
  (void)device_loader.next().value().images();       // must not compile
  (void)device_loader.next().value().as<float>();    // must not compile
  (void)device_loader.next().value().labels();       // must not compile
  (void)device_loader.next().value().samples();      // must not compile
  (void)device_loader.next().value().ready_event();  // must not compile
#endif
}
