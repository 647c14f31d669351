package translations

import "testing"

func TestWhoReadsEnglish(t *testing.T) {
	tests := map[string]struct {
		env  map[string]string
		want bool
	}{
		"nothing":             {nil, true},
		"English":             {map[string]string{"LANG": "en_US.UTF-8"}, true},
		"other English":       {map[string]string{"LANG": "en_GB.UTF-8"}, true},
		"C":                   {map[string]string{"LANG": "C.UTF-8"}, true},
		"no encoding":         {map[string]string{"LANG": "de_DE"}, true}, // kubectl wants one
		"German":              {map[string]string{"LANG": "de_DE.UTF-8"}, false},
		"messages in German":  {map[string]string{"LANG": "en_US.UTF-8", "LC_MESSAGES": "de_DE.UTF-8"}, false},
		"all in English":      {map[string]string{"LC_ALL": "en_US.UTF-8", "LANG": "de_DE.UTF-8"}, true},
		"all in C":            {map[string]string{"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, true},
		"nobody's translated": {map[string]string{"LANG": "da_DK.UTF-8"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := english(func(name string) string { return tt.env[name] }); got != tt.want {
				t.Errorf("english %t, want %t", got, tt.want)
			}
		})
	}
}
