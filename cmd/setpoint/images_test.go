package main

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/rogpeppe/go-internal/testscript"
)

// mirror serves a small image until the script ends. The file, like k3s's registries.yaml, says that the registry which the image's name
// has is mirrored there.
func mirror(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mirror FILE IMAGE")
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	ts.Defer(server.Close)
	image, err := random.Image(1000, 1)
	ts.Check(err)
	mirrored, repository, _ := strings.Cut(args[1], "/")
	ref, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/" + repository)
	ts.Check(err)
	ts.Check(remote.Write(ref, image))
	text := fmt.Sprintf("mirrors:\n  %s:\n    endpoint: [%q]\n", mirrored, server.URL)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}
