package credentials

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, image string
		want           bool
	}{
		{"gcr.io", "gcr.io/team/app", true},
		{"gcr.io", "eu.gcr.io/team/app", false},
		{"*.azurecr.io", "a.azurecr.io/app", true},
		{"*.azurecr.io", "a.b.azurecr.io/app", false},
		{"*.io", "k8s.azurecr.io/app", false},
		{"*.*.registry.io", "a.b.registry.io/app", true},
		{"app*.k8s.io", "app7.k8s.io/app", true},
		{"k8s.*", "k8s.io/app", true},
		{"123456789.dkr.ecr.*.amazonaws.com", "123456789.dkr.ecr.us-east-1.amazonaws.com/app", true},
		{"registry.io:8080/path", "registry.io:8080/path/app", true},
		{"registry.io:8080/path", "registry.io/path/app", false},
		{"registry.io", "registry.io:8080/path/app", false},
		{"registry.io/team", "registry.io/other/app", false},
		{"https://registry.io/team", "registry.io/team/app", true},
		{"[", "registry.io/app", false},
	} {
		if got := matches(c.pattern, c.image); got != c.want {
			t.Errorf("%s and %s: %v", c.pattern, c.image, got)
		}
	}
}

const head = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n"

// provider is a line of a configuration.
func provider(name, more string) string {
	return fmt.Sprintf("- {name: %s, matchImages: ['*.example.com'], apiVersion: credentialprovider.kubelet.k8s.io/v1, defaultCacheDuration: 10m%s}\n", name, more)
}

// write makes a folder of programs, which are shell scripts, and a configuration.
func write(t *testing.T, config string, programs map[string]string) (file, dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, script := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\ncd "+dir+"\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file = filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	return file, dir
}

func plugins(t *testing.T, config string, programs map[string]string) (p *Plugins, dir string) {
	t.Helper()
	file, dir := write(t, config, programs)
	p, err := Read(file, dir)
	if err != nil {
		t.Fatal(err)
	}
	return p, dir
}

// answering counts its runs in the file "runs" and answers.
func answering(key, duration, auth string) string {
	if duration != "" {
		duration = `"cacheDuration":"` + duration + `",`
	}
	return `cat >> requests; echo >> runs; echo '{"apiVersion":"credentialprovider.kubelet.k8s.io/v1","kind":"CredentialProviderResponse",` +
		`"cacheKeyType":"` + key + `",` + duration + `"auth":{` + auth + `}}'`
}

func runs(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "runs"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

func TestWhatPluginsSay(t *testing.T) {
	script := `[ "$1 $REGION" = "get-login eu" ] || exit 3; ` + answering("Registry", "",
		`"*.example.com":{"username":"a","password":"b"},"x.example.com/team":{"username":"team","password":"c"},"other.org":{"username":"no"}`)
	p, dir := plugins(t, head+provider("one", ", args: [get-login], env: [{name: REGION, value: eu}]")+provider("two", ""),
		map[string]string{"one": script, "two": "echo oops >&2; exit 1"})
	got, err := p.Logins(t.Context(), "x.example.com/team/app", Asker{})
	want := []Login{{"x.example.com/team", "team", "c", nil}, {"*.example.com", "a", "b", nil}}
	if !reflect.DeepEqual(got, want) || err == nil || err.Error() != "credential provider two: exit status 1" {
		t.Errorf("%+v, %v", got, err)
	}
	request, err := os.ReadFile(filepath.Join(dir, "requests"))
	if err != nil || string(request) != `{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":"x.example.com/team/app"}` {
		t.Errorf("%s, %v", request, err)
	}
	if got, err := p.Logins(t.Context(), "example.org/app", Asker{}); got != nil || err != nil || runs(t, dir) != 1 {
		t.Errorf("for an image that no pattern means: %v, %v", got, err)
	}
	if got, err := (*Plugins)(nil).Logins(t.Context(), "x.example.com/app", Asker{}); got != nil || err != nil {
		t.Errorf("without plugins: %v, %v", got, err)
	}
}

func TestAnswersAreKept(t *testing.T) {
	for _, c := range []struct {
		key, duration string
		want          [4]int // runs after an image, the same again, another of its registry, one of another registry
		after         int    // and after an hour
	}{
		{"Image", "", [4]int{1, 1, 2, 3}, 4},
		{"Registry", "30m", [4]int{1, 1, 1, 2}, 3},
		{"Global", "2h", [4]int{1, 1, 1, 1}, 1},
		{"Image", "0s", [4]int{1, 2, 3, 4}, 5},
	} {
		p, dir := plugins(t, head+provider("one", ""), map[string]string{"one": answering(c.key, c.duration, "")})
		for i, image := range []string{"x.example.com/a", "x.example.com/a", "x.example.com/b", "y.example.com/a"} {
			if _, err := p.Logins(t.Context(), image, Asker{}); err != nil || runs(t, dir) != c.want[i] {
				t.Errorf("%s %s, %s: %d runs, %v, want %d", c.key, c.duration, image, runs(t, dir), err, c.want[i])
			}
		}
	}
}

// TestAnswersEnd: the clock of a bubble says how long they are good; no program runs in it.
func TestAnswersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, dir := plugins(t, head+provider("one", ""), map[string]string{"one": answering("Image", "30m", "")})
		for want := 1; want <= 3; want++ {
			for range 2 {
				if _, err := p.Logins(t.Context(), "x.example.com/a", Asker{}); err != nil || runs(t, dir) != want {
					t.Errorf("%d runs, %v, want %d", runs(t, dir), err, want)
				}
			}
			time.Sleep(30*time.Minute + time.Second)
		}
	})
}

func TestPullsOfOneImageShareAnAnswer(t *testing.T) {
	p, dir := plugins(t, head+provider("one", ""), map[string]string{"one": answering("Image", "", "")})
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := p.Logins(t.Context(), "x.example.com/a", Asker{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := runs(t, dir); got != 1 {
		t.Errorf("%d runs", got)
	}
}

func TestPluginsThatLie(t *testing.T) {
	for script, want := range map[string]string{
		"echo secret":             "no JSON",
		"echo '{}'":               `answered with "" ""`,
		"exit 0":                  "no JSON",
		answering("Node", "", ""): `cacheKeyType: "Node"`,
		"yes secret":              "longer than",
		"kill -9 $$":              "killed",
	} {
		p, _ := plugins(t, head+provider("one", ""), map[string]string{"one": script})
		got, err := p.Logins(t.Context(), "x.example.com/a", Asker{})
		if got != nil || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, %v, want %s", script, got, err, want)
		}
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	good := provider("one", "")
	for config, want := range map[string]string{
		"":                                  "want apiVersion",
		"kind: CredentialProviderConfig":    "want apiVersion",
		head:                                "providers: at least one",
		head + good + good:                  `providers[1].name: "one" is there twice`,
		head + provider("../one", ""):       "providers[0].name: want the name of a program",
		head + provider("absent", ""):       "providers[0].name: there is no program",
		head + provider("one", ", more: 1"): "unknown field",
		head + strings.Replace(good, "10m", "-1s", 1):             "providers[0].defaultCacheDuration",
		head + strings.Replace(good, "k8s.io/v1", "k8s.io/v2", 1): "providers[0].apiVersion",
		head + strings.Replace(good, "'*.example.com'", "", 1):    "providers[0].matchImages: want at least one",
		head + strings.Replace(good, "*.example.com", "[", 1):     "providers[0].matchImages[0]",
		head + provider("one", ", tokenAttributes: {}"):           "tokenAttributes.serviceAccountTokenAudience: want the audience",
		head + strings.Repeat("#", fileSizeMax):                   "longer than",
	} {
		file, dir := write(t, config, map[string]string{"one": "exit 0"})
		if _, err := Read(file, dir); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.300s: %v, want %s", config, err, want)
		}
	}
	file, dir := write(t, head+good, map[string]string{"one": "exit 0"})
	if p, err := Read(filepath.Dir(file), dir); err != nil || len(p.list) != 1 {
		t.Errorf("a folder: %v", err)
	}
	for _, flags := range [][2]string{{file, ""}, {"", dir}, {t.TempDir(), dir}, {filepath.Join(dir, "absent"), dir}} {
		if _, err := Read(flags[0], flags[1]); err == nil {
			t.Errorf("%q was read", flags)
		}
	}
	if p, err := Read("", ""); p != nil || err != nil {
		t.Errorf("%v, %v", p, err)
	}
}
