package configuration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"

	"github.com/setpoint-io/setpoint/apiserver/admission/choice"
)

// taken are the plugins that a configuration reaches.
var taken = []string{
	"PodSecurity", "ResourceQuota", "PodNodeSelector", "PodTolerationRestriction", "EventRateLimit", "ImagePolicyWebhook",
	"MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook",
}

// Configuration is what plugins are told. The zero value tells nothing.
type Configuration struct{ texts map[string][]byte }

// For is the text for a plugin; nil: there is none.
func (c Configuration) For(plugin string) []byte { return c.texts[plugin] }

// Read reads the file, and those that it names. added are the plugins that run beside the default ones. No path is no configuration.
func Read(path string, added []string) (Configuration, error) {
	c := Configuration{texts: map[string][]byte{}}
	if path == "" {
		return c, nil
	}
	file, err := read(path)
	if err != nil {
		return c, fmt.Errorf("--admission-control-config-file: %s: %w", path, err)
	}
	for i, plugin := range file.Plugins {
		err := c.take(plugin, filepath.Dir(path), added)
		if err != nil {
			return c, fmt.Errorf("--admission-control-config-file: %s: plugins[%d]: %s: %w", path, i, plugin.Name, err)
		}
	}
	return c, nil
}

func read(path string) (*apiserver.AdmissionConfiguration, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	obj, err := runtime.Decode(serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(), text)
	if err != nil {
		return nil, err
	}
	file, ok := obj.(*apiserver.AdmissionConfiguration)
	if !ok {
		return nil, fmt.Errorf("expected AdmissionConfiguration, got %T", obj)
	}
	return file, nil
}

// take keeps the text for one plugin.
func (c Configuration) take(p apiserver.AdmissionPluginConfiguration, folder string, added []string) error {
	if err := honoured(p.Name, added); err != nil {
		return err
	}
	switch _, twice := c.texts[p.Name]; {
	case twice:
		return errors.New("it has two configurations")
	case p.Configuration != nil:
		c.texts[p.Name] = p.Configuration.Raw
		return nil
	case p.Path == "":
		return errors.New("it has neither a configuration nor a path")
	}
	path := p.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	text, err := os.ReadFile(path)
	c.texts[p.Name] = text
	return err
}

// honoured says why a configuration would have no effect.
func honoured(name string, added []string) error {
	plugin, known := choice.Find(name)
	switch {
	case !known:
		return errors.New("there is no such plugin")
	case !slices.Contains(taken, name):
		return errors.New("it takes no configuration")
	case plugin.Default != choice.On && !slices.Contains(added, name):
		return errors.New("it is not enabled: add it to --enable-admission-plugins")
	}
	return nil
}
