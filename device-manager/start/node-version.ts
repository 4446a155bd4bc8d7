/** libuv before 1.52 loses the end of a terminal's output; Node before 24.12 does not run the sources. */
export function nodeTrouble(versions: { node: string; uv?: string | undefined }): string | null {
  const [major = 0, minor = 0] = versions.node.split('.').map(Number)
  const [uvMajor = 0, uvMinor = 0] = (versions.uv ?? '').split('.').map(Number)
  if (major < 24 || (major === 24 && minor < 12))
    return `svc-device needs Node 24.12 or newer; this is Node ${versions.node}.`
  if (uvMajor === 1 && uvMinor < 52)
    return `svc-device needs a Node with libuv 1.52 or newer; this one has ${versions.uv ?? 'none'}.`
  return null
}
