// Package manifests reads webhooks and policies from the files of a folder, for upstream's plugins that run them beside those of the API.
//
// It owns the loaders that these plugins want: each completes and judges an object by the rules of its kind
// (apiserver/kinds/admissionregistration). Which folder it is says the configuration of a plugin, in apiserver/admission/configuration;
// package apiserver/admission/dynamic hands the loaders to the plugins. What may be in the files, and reading them again when they
// change, is upstream's.
//
// Promises: a mistake in a file keeps a server from starting. A later one is logged, once, and what was read before stays in force.
package manifests
