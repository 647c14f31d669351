// Package storagemigration does StorageVersionMigrations: it writes every object of a resource again, unchanged, so that the API
// keeps it in the version and with the encryption in which it would be written now.
//
// Reads: StorageVersionMigrations; discovery; the metadata of the resource's objects, in pages. Writes: the objects (a patch that
// changes nothing; the API writes it only if the object is outdated), the status of migrations, the status of custom resource
// definitions. Owns: status of StorageVersionMigrations; of a definition the condition StorageMigrating and, at the end of a
// migration during which the definition did not change, status.storedVersions.
//
// It promises: one migration of a resource runs at a time, the oldest first. It has the condition Running, gets the
// resourceVersion of its beginning, and at the end Succeeded or Failed; then Running becomes false. Objects that were written later than
// its beginning, or while it runs, are passed over: they are migrated already. What may pass (a server that does not answer, throttling) is
// tried again and shown in Running's message; a refusal ends the migration. A resource that is not there within a minute fails.
// A new leader goes on where the former stopped. Nothing is written when there is nothing to migrate.
//
// Tests: the plan as a table; the whole controller in synctest bubbles; the rewriting itself in package apiserver
// (TestStorageVersionMigration).
package storagemigration
