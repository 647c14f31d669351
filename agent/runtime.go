package agent

import "context"

// embeddedRuntime begins the version of the runtime that is built in, which bounds the group of all pods.
const embeddedRuntime = "setpoint://"

func (a *agent) runtimeVersion(ctx context.Context) string {
	v, err := a.Runtime.Version(ctx, "v1")
	if err != nil {
		return ""
	}
	return v.RuntimeName + "://" + v.RuntimeVersion
}
