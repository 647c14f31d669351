package profile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// fileSizeMax bounds a configuration file, in bytes.
const fileSizeMax = 1 << 20

// Read reads the file of --scheduler-config; an empty path is the Default.
func Read(path string) (Config, error) {
	if path == "" {
		return Default(), nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("--scheduler-config: %w", err)
	}
	config, err := Parse(text)
	if err != nil {
		return Config{}, fmt.Errorf("--scheduler-config %s: %w", path, err)
	}
	return config, nil
}

// Parse reads a KubeSchedulerConfiguration in YAML or JSON.
func Parse(text []byte) (Config, error) {
	in, err := decode(text)
	if err != nil {
		return Config{}, err
	}
	if err := refuse(in); err != nil {
		return Config{}, err
	}
	config := Config{
		BackoffMin: seconds(in.PodInitialBackoffSeconds, backoffMinDefault),
		BackoffMax: seconds(in.PodMaxBackoffSeconds, backoffMaxDefault),
	}
	if err := checkBackoff(in); err != nil {
		return Config{}, err
	}
	if len(in.Profiles) == 0 {
		in.Profiles = []configv1.KubeSchedulerProfile{{}}
	}
	if len(in.Profiles) == 1 && in.Profiles[0].SchedulerName == nil {
		in.Profiles[0].SchedulerName = ptr.To(corev1.DefaultSchedulerName)
	}
	names := map[string]bool{}
	for i := range in.Profiles {
		p, err := newProfile(&in.Profiles[i], field.NewPath("profiles").Index(i), in.PercentageOfNodesToScore)
		if err != nil {
			return Config{}, err
		}
		if names[p.Name] {
			return Config{}, field.Duplicate(field.NewPath("profiles").Index(i).Child("schedulerName"), p.Name)
		}
		names[p.Name] = true
		config.Profiles = append(config.Profiles, p)
	}
	return config, nil
}

// decode refuses fields that it does not know, and fields that are there twice.
func decode(text []byte) (*configv1.KubeSchedulerConfiguration, error) {
	if len(text) > fileSizeMax {
		return nil, fmt.Errorf("longer than %d bytes", fileSizeMax)
	}
	if err := onlyDocument(text); err != nil {
		return nil, err
	}
	object, kind, err := newDecoder().Decode(text, nil, nil)
	if err != nil {
		return nil, oneLine(err)
	}
	in, ok := object.(*configv1.KubeSchedulerConfiguration)
	if !ok {
		return nil, field.NotSupported(field.NewPath("kind"), kind.Kind, []string{"KubeSchedulerConfiguration"})
	}
	return in, nil
}

// newDecoder decodes the types of the configuration strictly.
func newDecoder() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(configv1.AddToScheme(scheme)) // fails only for types that clash
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

// onlyDocument refuses further documents of YAML: the decoder would leave them out.
func onlyDocument(text []byte) error {
	documents, reader := 0, utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		var content any
		if err := yaml.Unmarshal(document, &content); err == nil && content == nil {
			continue // comments
		}
		if documents++; err != nil || documents > 1 {
			return errors.New("want one YAML document")
		}
	}
}

// oneLine is the error in one line: that of YAML has several.
func oneLine(err error) error {
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}

func seconds(n *int64, otherwise time.Duration) time.Duration {
	if n == nil {
		return otherwise
	}
	return time.Duration(*n) * time.Second
}

// secondsMax bounds times that are given in seconds: a day.
const secondsMax = 24 * 60 * 60

func checkBackoff(in *configv1.KubeSchedulerConfiguration) error {
	first, longest := ptr.Deref(in.PodInitialBackoffSeconds, int64(backoffMinDefault/time.Second)),
		ptr.Deref(in.PodMaxBackoffSeconds, int64(backoffMaxDefault/time.Second))
	switch {
	case first <= 0 || first > secondsMax:
		return field.Invalid(field.NewPath("podInitialBackoffSeconds"), first, fmt.Sprintf("must be 1 to %d", secondsMax))
	case longest < first || longest > secondsMax:
		return field.Invalid(field.NewPath("podMaxBackoffSeconds"), longest,
			fmt.Sprintf("must be from podInitialBackoffSeconds (%d) to %d", first, secondsMax))
	}
	return nil
}

// newProfile makes one profile; global is the percentageOfNodesToScore of all profiles that name none.
func newProfile(in *configv1.KubeSchedulerProfile, path *field.Path, global *int32) (Profile, error) {
	p := Profile{Name: ptr.Deref(in.SchedulerName, ""), NodesToScore: ptr.Deref(in.PercentageOfNodesToScore, ptr.Deref(global, 0))}
	if p.Name == "" {
		return p, field.Required(path.Child("schedulerName"), "every profile needs one")
	}
	if err := checkPercent(path.Child("percentageOfNodesToScore"), in.PercentageOfNodesToScore); err != nil {
		return p, err
	}
	set, err := resolve(in.Plugins, path.Child("plugins"))
	if err != nil {
		return p, err
	}
	args, err := readArgs(in.PluginConfig, path.Child("pluginConfig"))
	if err != nil {
		return p, err
	}
	p.VolumeWaitMax, p.DeviceSearchMax, p.DeviceWaitMax = args.volumeWaitMax, args.deviceSearchMax, args.deviceWaitMax
	if set.preempts {
		p.Preemption = &args.preemption
	}
	p.Plugins = enabledPlugins(set, args.plugins)
	return p, nil
}

func checkPercent(path *field.Path, percent *int32) error {
	if percent != nil && (*percent < 0 || *percent > 100) {
		return field.Invalid(path, *percent, "must be 0 to 100")
	}
	return nil
}
