package main

import (
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// quietLibraries sends what the Kubernetes libraries log where everything else
// goes, and only what may concern an operator: their chatter becomes Debug.
func quietLibraries(logger *slog.Logger) {
	klog.SetLogger(logr.FromSlogHandler(logger.With("from", "client-go").Handler()).V(1))
	runtime.ReallyCrash = false
}
