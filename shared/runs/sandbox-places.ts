/** The places in a sandbox of what it needs; the control plane puts it there, the runner in it reads it. */
export const sandboxPlaces = {
  /** The volume: the home of the run, and the state of the runner. */
  work: '/work',
  /** The folder of this sandbox alone, read-only. */
  broker: '/run/svc',
  identity: 'identity.json',
  /** The file of what a sandbox knows of itself before it is told who it is. */
  waiting: 'waiting.json',
  socket: 'broker.sock',
  /** What Node compiled of the programs when the image was built. */
  compiled: '/opt/svc/compiled',
} as const
