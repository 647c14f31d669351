package marks

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatWasSavedIsLoaded(t *testing.T) {
	dir := Dir(t.TempDir())
	if m, err := dir.Load(); m != nil || err != nil {
		t.Errorf("no marker: %v, %v", m, err)
	}
	if w, err := dir.LoadWatermark(); w.Index != 0 || err != nil {
		t.Errorf("no watermark: %v, %v", w, err)
	}
	marker := &Marker{ServerID: "a+1", ClusterID: "c", State: Founding, Nonce: "n", Founders: map[string]string{"a": "n"}}
	water := Watermark{ServerID: "a+1", Index: 7, Term: 2}
	if err := errors.Join(dir.Save(marker), dir.SaveWatermark(water)); err != nil {
		t.Fatal(err)
	}
	gotMarker, err := dir.Load()
	if diff := cmp.Diff(marker, gotMarker); diff != "" || err != nil {
		t.Errorf("marker (-want +got): %s%v", diff, err)
	}
	gotWater, err := dir.LoadWatermark()
	water.Checksum = gotWater.Checksum
	if diff := cmp.Diff(water, gotWater); diff != "" || err != nil {
		t.Errorf("watermark (-want +got): %s%v", diff, err)
	}
	if err := dir.RemoveWatermark(); err != nil {
		t.Error(err)
	}
	if err := dir.RemoveWatermark(); err != nil {
		t.Errorf("without one: %v", err)
	}
}

// TestFilesOfOtherReleasesAreRead: what a marker's checksum covers depends on what is in it, and a release that sums up otherwise takes
// every other's for damaged. The texts are never changed.
func TestFilesOfOtherReleasesAreRead(t *testing.T) {
	for text, want := range map[string]Marker{
		`{"serverID":"a+1","checksum":1361320681}`:                                   {ServerID: "a+1"},
		`{"serverID":"a+1","clusterID":"c","checksum":3835536583}`:                   {ServerID: "a+1", ClusterID: "c"},
		`{"serverID":"a+1","clusterID":"c","state":"joining","checksum":4186775573}`: {ServerID: "a+1", ClusterID: "c", State: Joining},
		`{"serverID":"a","state":"fresh","nonce":"n","checksum":541665891}`:          {ServerID: "a", State: Fresh, Nonce: "n"},
		`{"serverID":"a","nonce":"n","checksum":3306218265}`:                         {ServerID: "a", Nonce: "n"},
		`{"serverID":"a","founders":{"a":"n"},"checksum":185109163}`:                 {ServerID: "a", Founders: map[string]string{"a": "n"}},
		`{"serverID":"a","clusterID":"c","life":"l","checksum":3782611683}`:          {ServerID: "a", ClusterID: "c", Life: "l"},
		`{"serverID":"a","state":"restored","backup":"b","checksum":558229328}`:      {ServerID: "a", State: Restored, Backup: "b"},
		`{"serverID":"a","clusterID":"c","backup":"b","checksum":2352522684}`:        {ServerID: "a", ClusterID: "c", Backup: "b"},
	} {
		dir := Dir(t.TempDir())
		if err := os.WriteFile(dir.marker(), []byte(text), fileMode); err != nil {
			t.Fatal(err)
		}
		got, err := dir.Load()
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		want.Checksum = got.Checksum
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestAChangedFileIsCorrupt(t *testing.T) {
	dir := Dir(t.TempDir())
	marker := &Marker{
		ServerID: "a+1", ClusterID: "c", State: Restored, Nonce: "n", Founders: map[string]string{"a": "n"}, Life: "l", Backup: "b",
	}
	water := Watermark{ServerID: "a+1", Index: 7, Term: 2}
	if err := errors.Join(dir.Save(marker), dir.SaveWatermark(water)); err != nil {
		t.Fatal(err)
	}
	for name, load := range map[string]func() error{
		"marker.json":    func() error { _, err := dir.Load(); return err },
		"watermark.json": func() error { _, err := dir.LoadWatermark(); return err },
	} {
		path := filepath.Join(string(dir), name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for at, b := range whole[:len(whole)-1] { // the last is a line feed
			changed := append([]byte(nil), whole...)
			changed[at] = b ^ 1
			if err := os.WriteFile(path, changed, fileMode); err != nil {
				t.Fatal(err)
			}
			if err := load(); err != nil && !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s, byte %d: %v", name, at, err)
			} else if err == nil && sameJSON(t, dir, marker, water) == "" {
				continue // a changed name of a field whose value was zero, or a space
			} else if err == nil {
				t.Errorf("%s, byte %d: loaded another: %s", name, at, changed)
			}
		}
		if err := os.WriteFile(path, whole, fileMode); err != nil {
			t.Fatal(err)
		}
	}
}

// sameJSON says how what is stored differs from what was saved.
func sameJSON(t *testing.T, dir Dir, marker *Marker, water Watermark) string {
	t.Helper()
	gotMarker, err := dir.Load()
	if err != nil {
		t.Fatal(err)
	}
	gotWater, err := dir.LoadWatermark()
	if err != nil {
		t.Fatal(err)
	}
	water.Checksum = gotWater.Checksum
	return cmp.Diff(marker, gotMarker) + cmp.Diff(water, gotWater)
}
