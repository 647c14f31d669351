package main

import (
	"slices"
	"strings"
)

// libraries are what a raised suite is compiled with, of whatever minor version of Kubernetes: what is below Kubernetes's client
// libraries, and what tests are made of. Suites at the same versions of these compile them, and the client libraries, once.
var libraries = []string{
	"github.com/fxamacker/cbor/v2@v2.9.1", "github.com/go-logr/logr@v1.4.4", "github.com/google/gnostic-models@v0.7.1",
	"github.com/onsi/ginkgo/v2@v2.32.2", "github.com/onsi/gomega@v1.43.0",
	"github.com/prometheus/client_golang@v1.25.0", "github.com/prometheus/client_model@v0.6.3", "github.com/prometheus/common@v0.72.0",
	"github.com/prometheus/procfs@v0.22.0", "go.yaml.in/yaml/v2@v2.4.4", "go.yaml.in/yaml/v3@v3.0.5", "golang.org/x/net@v0.62.0",
	"golang.org/x/oauth2@v0.37.0", "golang.org/x/sync@v0.24.0", "golang.org/x/sys@v0.49.0", "golang.org/x/term@v0.47.0",
	"golang.org/x/text@v0.43.0", "golang.org/x/time@v0.16.0", "google.golang.org/protobuf@v1.36.12", "k8s.io/klog/v2@v2.140.0",
	"k8s.io/kube-openapi@v0.0.0-20260821135717-be32def86098", "k8s.io/utils@v0.0.0-20260626114624-be93311217bd",
	"sigs.k8s.io/structured-merge-diff/v6@v6.4.2",
}

// ofSchemas are those of the libraries that Kubernetes 1.33 and older cannot be compiled with: they have the types of
// structured-merge-diff v6 and of another module of YAML.
var ofSchemas = []string{"github.com/google/gnostic-models@", "k8s.io/kube-openapi@", "sigs.k8s.io/structured-merge-diff/"}

// olderLibraries are the libraries without those of schemas, of which Kubernetes asks for its own versions.
func olderLibraries() []string {
	return slices.DeleteFunc(slices.Clone(libraries), func(module string) bool {
		return slices.ContainsFunc(ofSchemas, func(name string) bool { return strings.HasPrefix(module, name) })
	})
}

// raisedTo returns the libraries, and Kubernetes's and controller-runtime's at releases.
func raisedTo(libraries []string, kubernetes, controllerRuntime string) []string {
	raised := append(slices.Clone(libraries), "sigs.k8s.io/controller-runtime@"+controllerRuntime)
	for _, name := range []string{"api", "apiextensions-apiserver", "apimachinery", "apiserver", "client-go", "component-base"} {
		raised = append(raised, "k8s.io/"+name+"@"+kubernetes)
	}
	return raised
}

// The releases that suites share.
var (
	kubernetes133 = raisedTo(olderLibraries(), "v0.33.13", "v0.20.4")
	kubernetes134 = raisedTo(libraries, "v0.34.5", "v0.22.4")
	kubernetes136 = raisedTo(libraries, "v0.36.4", "v0.24.1")
	kubernetes137 = raisedTo(libraries, "v0.37.2", "v0.25.2")
)

const clientLibrary = "k8s.io/client-go@"

// kubernetes is the version to which the recipe raises Kubernetes's client library, if it does.
func (r recipe) kubernetes() string {
	for _, module := range r.raised {
		if version, found := strings.CutPrefix(module, clientLibrary); found {
			return version
		}
	}
	return ""
}
