package storage

import (
	"strings"
	"testing"
)

func TestCheckSharedFindsChanges(t *testing.T) {
	store := newTestStore(0)
	store.VerifyShared()
	table := store.Table(configMaps)
	for _, name := range []string{"a", "b"} {
		put(t, table, configMap(name, map[string]string{"k": "v"}))
	}
	a, err := table.Get(t.Context(), "n", "a", "")
	if err != nil {
		t.Fatal(err)
	}
	a.Copy().GetLabels()["k"] = "mine"
	if err := store.CheckShared(); err != nil {
		t.Errorf("a copy was changed: %v", err)
	}
	a.Object().GetLabels()["k"] = "everybody's"
	if err := store.CheckShared(); err == nil || !strings.Contains(err.Error(), "n/a@1") || strings.Contains(err.Error(), "n/b") {
		t.Errorf("err = %v", err)
	}
}
