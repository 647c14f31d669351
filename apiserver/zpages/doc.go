// Package zpages serves /statusz and /flagz, which say of one server since when it runs, in which version and with which flags.
//
// It owns what is told there; pages and formats are upstream's. Package server hands the handlers to apiserver/discovery, which answers
// after authorization: the role system:monitoring may read both.
//
// Promises: a flag's value is shown as it was given, so no flag may take a secret; a test of the command looks for such flags.
package zpages
