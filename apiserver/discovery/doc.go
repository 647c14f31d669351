// Package discovery tells clients what the API server offers: the groups, versions
// and resources (aggregated and legacy discovery), their schemas (OpenAPI v2 and v3),
// its version, its health and its metrics.
//
// It owns models.json.gz, the schemas of the published types, which apiserver/rest uses too (TypeConverter, for
// server-side apply). Package server builds its Handler, to which apiserver routes the non-resource paths. It
// calls only apiserver/resource.
//
// Everything is derived from the kinds handed in; SetKinds replaces them while
// requests are served. Discovery documents are built then; OpenAPI documents, which
// are large and seldom read, at their first request, and are kept compressed. Health
// checks have a time limit and run for each request.
//
// The tests read the documents with client-go's own discovery and OpenAPI clients
// and compare lists with golden files.
package discovery

//go:generate go run ./openapigen
