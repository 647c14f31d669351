package apiserver

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// TestPagesOfThePast: each page of an exact LIST that the watch history does not reach comes from history, also if objects changed in between.
func TestPagesOfThePast(t *testing.T) {
	log := raftstoretest.NewLocal(state.Options{RingBytes: 1})
	config := serverConfig(t, log)
	kept, err := history.Open(history.Config{
		Dir: t.TempDir(), Source: log, Retention: time.Hour, SizeBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { kept.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	config.Storage.KeepHistory(kept)
	server, _ := startServer(t, config)
	waitFor := func() { // it has what was written
		if _, err := kept.At(t.Context(), "/core/configmaps/none/", log.Root().Revision); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody(fmt.Sprintf("c%d", i))})
		waitFor()
	}
	revision := log.Root().Revision
	change := func(value string) {
		for i := range 5 {
			patch := call{method: "PATCH", path: fmt.Sprintf("%s/c%d", cmPath, i), body: `{"data":{"k":"` + value + `"}}`, contentType: "application/merge-patch+json"}
			mustDo[corev1.ConfigMap](t, server, patch)
			waitFor()
		}
	}
	change("newer")
	if _, err := log.RootAt(revision); err == nil {
		t.Fatal("the watch history still reaches so far")
	}
	var names []string
	query := fmt.Sprintf("?limit=2&resourceVersion=%d&resourceVersionMatch=Exact", revision)
	for query != "" {
		page := mustDo[corev1.ConfigMapList](t, server, call{path: cmPath + query})
		for i := range page.Items {
			names = append(names, page.Items[i].Name+page.Items[i].Data["k"])
		}
		if query = ""; page.Continue != "" {
			query = "?limit=2&continue=" + page.Continue
		}
		change("newest")
	}
	if got := strings.Join(names, " "); strings.Contains(got, "new") || len(names) != 5 {
		t.Errorf("the pages have %s", got)
	}
}
