// Package admission completes and judges objects after decoding and before the
// kind's own rules: one plugin a file, in the order of the list in plugins.go.
//
// apiserver hands the chain to upstream's handlers. Plugins are pure functions of
// the request: none does I/O or keeps state. A plugin that must read objects gets
// a lister in its constructor. They are tested with tables.
package admission
