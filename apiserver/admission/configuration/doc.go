// Package configuration reads the file of --admission-control-config-file: an AdmissionConfiguration (apiserver.config.k8s.io), which has a
// configuration for single admission plugins, in the file itself or in another.
//
// It owns which plugins take one. What a plugin's text says is the plugin's own business. The commands read it before a server starts;
// package server hands the texts on. Files are read once.
//
// Promises: a configuration reaches its plugin or is refused by name, also one for a plugin that does not run.
package configuration
