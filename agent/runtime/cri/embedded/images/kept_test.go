package images

import "testing"

func TestWhichImagesAreKept(t *testing.T) {
	for _, c := range []struct {
		name  string
		image Image
		want  bool
	}{
		{"pulled", Image{Tags: []string{"a:1"}}, false},
		{"pinned", Image{Pinned: true}, true},
		{"of an archive", Image{Tags: []string{"a:1"}, Archived: []string{"a:1"}}, true},
		{"of an archive, by digest", Image{Digests: []string{"a@sha256:1"}, Archived: []string{"a@sha256:1"}}, true},
		{"its name went to a newer one", Image{Tags: []string{"b:1"}, Archived: []string{"a:1"}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.image.Kept(); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
