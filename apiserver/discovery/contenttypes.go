package discovery

import "k8s.io/apimachinery/pkg/types"

// Content types of bodies and answers. kubectl believes them: it applies changes by a
// strategic merge where that is said to be understood. Kinds without a Go type (custom)
// do not travel as protobuf.

func bodyTypes(custom bool) []string {
	if custom {
		return objectTypes(custom)
	}
	return []string{"*/*"}
}

func objectTypes(custom bool) []string {
	if custom {
		return []string{"application/json", "application/yaml"}
	}
	return []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf"}
}

func streamTypes(custom bool) []string {
	if custom {
		return []string{"application/json;stream=watch"}
	}
	return []string{"application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"}
}

func patchTypes(custom bool) []string {
	if custom {
		return []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType)}
	}
	return []string{
		string(types.JSONPatchType),
		string(types.MergePatchType),
		string(types.StrategicMergePatchType),
		string(types.ApplyYAMLPatchType),
	}
}
