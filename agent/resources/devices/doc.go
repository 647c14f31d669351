// Package devices gives pods the devices of device plugins (k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1), as a kubelet does.
//
// It owns: the folder device-plugins, in which plugins register at kubelet.sock and which holds the record of who has which device (a
// kubelet's name and form); the connection to each plugin; what the Node offers of their resources. Plugins may also open a socket in
// plugins_registry: agent/base/registration finds them. Who gets which device is decided by devices/ledger, which is pure.
//
// Promises: a device is given to one pod until nothing of that pod runs, also when the agent or the plugin starts anew in between;
// what a pod has been given is on disk before its container is made. Each call to a plugin has a limit, and a plugin that hangs delays
// only the pods that ask for its resource. What a plugin says is checked: a plugin that talks nonsense is left. When a plugin
// is gone its devices count as unhealthy, and five minutes later as none.
//
// Tested with plugins of devicestest on sockets in a folder of the test, and in agent with real containers.
package devices
