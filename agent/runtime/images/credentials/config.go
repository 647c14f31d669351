package credentials

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/cache"
	kubeletv1 "k8s.io/kubelet/config/v1"
	credentialv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
	"sigs.k8s.io/yaml"
)

// fileSizeMax bounds a configuration file, in bytes.
const fileSizeMax = 1 << 20

// Names of the flags, which are the kubelet's.
const (
	ConfigFlag = "image-credential-provider-config"
	DirFlag    = "image-credential-provider-bin-dir"
)

var (
	errBothFlags = errors.New("--" + ConfigFlag + " and --" + DirFlag + " need each other")
	errNoFiles   = errors.New("no *.json, *.yaml or *.yml in there")
	errSize      = errors.New("longer than a configuration can be")
	errKind      = errors.New("want apiVersion kubelet.config.k8s.io/v1 and kind CredentialProviderConfig")
)

// Read reads the file, or all files of the folder, that name plugins, whose programs are in dir. Without both there are none.
func Read(config, dir string) (*Plugins, error) {
	if config == "" && dir == "" {
		return nil, nil
	}
	if config == "" || dir == "" {
		return nil, errBothFlags
	}
	files, err := filesOf(config)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", ConfigFlag, err)
	}
	p := &Plugins{dir: dir}
	for _, file := range files {
		if err := p.readFile(file); err != nil {
			return nil, fmt.Errorf("--%s: %s: %w", ConfigFlag, file, err)
		}
	}
	return p, nil
}

func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path) // sorted
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: %w", path, errNoFiles)
	}
	return files, nil
}

func (p *Plugins) readFile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(text) > fileSizeMax {
		return fmt.Errorf("%w: %d bytes", errSize, len(text))
	}
	var c kubeletv1.CredentialProviderConfig
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	if c.APIVersion != kubeletv1.SchemeGroupVersion.String() || c.Kind != "CredentialProviderConfig" {
		return fmt.Errorf("%w, not %q and %q", errKind, c.APIVersion, c.Kind)
	}
	if len(c.Providers) == 0 {
		return errors.New("providers: at least one is required")
	}
	for i := range c.Providers {
		if err := p.add(&c.Providers[i]); err != nil {
			return fmt.Errorf("providers[%d].%w", i, err)
		}
	}
	return nil
}

func (p *Plugins) add(c *kubeletv1.CredentialProvider) error {
	if slices.ContainsFunc(p.list, func(other *plugin) bool { return other.config.Name == c.Name }) {
		return fmt.Errorf("name: %q is there twice", c.Name)
	}
	if err := check(c); err != nil {
		return err
	}
	path := filepath.Join(p.dir, c.Name)
	if info, err := os.Stat(path); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("name: there is no program %s", path)
	}
	p.list = append(p.list, &plugin{config: *c, path: path, answers: cache.NewLRUExpireCache(answersMax)})
	return nil
}

func check(c *kubeletv1.CredentialProvider) error {
	for _, rule := range []struct {
		bad         bool
		field, want string
	}{
		{c.Name == "" || c.Name == "." || c.Name == ".." || strings.ContainsAny(c.Name, "/ "), "name", "the name of a program, without / and spaces"},
		{len(c.MatchImages) == 0, "matchImages", "at least one pattern"},
		{c.DefaultCacheDuration == nil || c.DefaultCacheDuration.Duration < 0, "defaultCacheDuration", "a time that is not negative"},
		{c.APIVersion != credentialv1.SchemeGroupVersion.String(), "apiVersion", credentialv1.SchemeGroupVersion.String()},
	} {
		if rule.bad {
			return fmt.Errorf("%s: want %s", rule.field, rule.want)
		}
	}
	for i, pattern := range c.MatchImages {
		if _, err := split(pattern); err != nil {
			return fmt.Errorf("matchImages[%d]: %q: %w", i, pattern, err)
		}
	}
	return checkTokens(c)
}
