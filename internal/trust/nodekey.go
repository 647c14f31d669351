package trust

// NodeKeyAnnotation of a Node is the hash of the key that joined under its name
// (KeyHash). The servers write it and no node may (NodeRestriction); only that key gets
// further certificates for the name. A Node without it was registered in another way.
const NodeKeyAnnotation = "setpoint.io/node-key"
