// Package registration finds the plugins of this node: programs that open a socket in the folder plugins_registry and say there
// what they are, as node-driver-registrar does for CSI drivers.
//
// It owns: the watch of that folder. It calls the Handler of a plugin's type: agent/volumes/csi for CSIPlugin, agent/resources/devices for
// DevicePlugin, agent/resources/claims for DRAPlugin; plugins of other types are told that nobody here uses them.
//
// Promises: each socket is spoken to by a goroutine of its own, so a plugin that hangs keeps no other one waiting; every call has
// a limit; what failed is tried again, later each time, until the socket goes. A plugin is deregistered when its socket is removed
// or made anew, and not when the agent ends: its volumes stay in use.
//
// Tested with plugins of its own on sockets in a folder of the test.
package registration
