/** A sentence when this Node is too old to run the server, else null. */
export function nodeTrouble(node: string): string | null {
  const [major = 0, minor = 0] = node.split('.').map(Number)
  if (major > 24 || (major === 24 && minor >= 12)) return null
  return `svc-server needs Node 24.12 or newer; this is Node ${node}.`
}
