package profile

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugins"
)

// candidatesDefault is on how many nodes an eviction is compared, and candidatesPercentDefault the percentage from which on
// args of DefaultPreemption compare more: upstream's defaults. Without args it is candidatesDefault in clusters of any size.
const (
	candidatesDefault        = 100
	candidatesPercentDefault = 10
)

// args is what pluginConfig says.
type args struct {
	plugins       map[string]plugin.Plugin // those that have args, by name
	preemption    Preemption
	volumeWaitMax time.Duration

	deviceSearchMax, deviceWaitMax time.Duration
}

// readArgs decodes, completes and checks the args of all plugins.
func readArgs(list []configv1.PluginConfig, path *field.Path) (args, error) {
	a := args{
		plugins: map[string]plugin.Plugin{}, preemption: Preemption{NodesAbsolute: candidatesDefault}, volumeWaitMax: volumeWaitMaxDefault,
		deviceSearchMax: deviceSearchMaxDefault, deviceWaitMax: deviceWaitMaxDefault,
	}
	decoder, seen := newDecoder(), map[string]bool{}
	for i := range list {
		name, path := list[i].Name, path.Index(i)
		if _, ok := upstream[name]; !ok {
			return a, notSupported(path.Child("name"), fmt.Sprintf("%q is not one of upstream's plugins", name))
		}
		if seen[name] {
			return a, field.Duplicate(path.Child("name"), name)
		}
		seen[name] = true
		object, err := decodeArgs(decoder, &list[i], path)
		if err == nil {
			err = a.take(object, path.Child("args"))
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

func decodeArgs(decoder runtime.Decoder, in *configv1.PluginConfig, path *field.Path) (runtime.Object, error) {
	if len(in.Args.Raw) == 0 {
		return nil, field.Required(path.Child("args"), "without args the plugin need not be listed")
	}
	want := configv1.SchemeGroupVersion.WithKind(in.Name + "Args")
	object, kind, err := decoder.Decode(in.Args.Raw, &want, nil)
	switch {
	case kind != nil && *kind != want:
		return nil, field.NotSupported(path.Child("args", "kind"), kind.Kind, []string{want.Kind})
	case runtime.IsNotRegisteredError(err):
		return nil, notSupported(path.Child("args"), in.Name+" takes no args")
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path.Child("args"), oneLine(err))
	}
	return object, nil
}

// take checks the args of one plugin and makes it, or remembers what they say to the scheduler.
func (a *args) take(object runtime.Object, path *field.Path) error {
	var p plugin.Plugin
	var err error
	switch in := object.(type) {
	case *configv1.NodeResourcesFitArgs:
		p, err = plugins.NodeResourcesFit{Args: in}, completeFit(in, path)
	case *configv1.NodeResourcesBalancedAllocationArgs:
		p, err = plugins.NodeResourcesBalancedAllocation{Args: in}, completeBalance(in, path)
	case *configv1.InterPodAffinityArgs:
		p, err = plugins.InterPodAffinity{Args: in}, completeAffinity(in, path)
	case *configv1.PodTopologySpreadArgs:
		p, err = plugins.PodTopologySpread{Args: in}, completeSpread(in, path)
	case *configv1.NodeAffinityArgs:
		p, err = newNodeAffinity(in, path)
	case *configv1.VolumeBindingArgs:
		p, err = plugins.VolumeBinding{Shape: in.Shape}, checkVolumes(in, path)
		a.volumeWaitMax = seconds(in.BindTimeoutSeconds, volumeWaitMaxDefault)
	case *configv1.DefaultPreemptionArgs:
		a.preemption, err = newPreemption(in, path)
		return err
	case *configv1.DynamicResourcesArgs:
		return a.takeDevices(in, path)
	}
	if err == nil && p != nil {
		a.plugins[p.Name()] = p
	}
	return err
}

func newNodeAffinity(in *configv1.NodeAffinityArgs, path *field.Path) (plugin.Plugin, error) {
	p, err := plugins.NewNodeAffinity(in, path)
	if err != nil {
		return nil, oneLine(err)
	}
	return p, nil
}

func newPreemption(in *configv1.DefaultPreemptionArgs, path *field.Path) (Preemption, error) {
	percent := ptr.Deref(in.MinCandidateNodesPercentage, candidatesPercentDefault)
	absolute := ptr.Deref(in.MinCandidateNodesAbsolute, candidatesDefault)
	if err := checkPercent(path.Child("minCandidateNodesPercentage"), &percent); err != nil {
		return Preemption{}, err
	}
	if absolute < 0 {
		return Preemption{}, field.Invalid(path.Child("minCandidateNodesAbsolute"), absolute, "must be 0 or more")
	}
	if percent == 0 && absolute == 0 {
		return Preemption{}, field.Invalid(path.Child("minCandidateNodesAbsolute"), absolute, "must not be 0 if minCandidateNodesPercentage is")
	}
	return Preemption{NodesPercent: int(percent), NodesAbsolute: int(absolute)}, nil
}

// takeDevices remembers how long pods may take for their devices.
func (a *args) takeDevices(in *configv1.DynamicResourcesArgs, path *field.Path) error {
	if d := in.FilterTimeout; d != nil {
		if d.Duration < 0 {
			return field.Invalid(path.Child("filterTimeout"), d.Duration.String(), "must be zero or positive")
		}
		a.deviceSearchMax = d.Duration
	}
	if d := in.BindingTimeout; d != nil {
		if d.Duration < time.Second {
			return field.Invalid(path.Child("bindingTimeout"), d.Duration.String(), "must be at least 1 second")
		}
		a.deviceWaitMax = d.Duration
	}
	return nil
}

func checkVolumes(in *configv1.VolumeBindingArgs, path *field.Path) error {
	if n := in.BindTimeoutSeconds; n != nil && (*n < 0 || *n > secondsMax) {
		return field.Invalid(path.Child("bindTimeoutSeconds"), *n, fmt.Sprintf("must be 0 to %d", secondsMax))
	}
	if len(in.Shape) == 0 {
		return nil
	}
	return checkShape(in.Shape, path.Child("shape"))
}

func completeAffinity(in *configv1.InterPodAffinityArgs, path *field.Path) error {
	if in.HardPodAffinityWeight == nil {
		in.HardPodAffinityWeight = ptr.To[int32](1)
	}
	return checkPercent(path.Child("hardPodAffinityWeight"), in.HardPodAffinityWeight)
}
