import type { Person, TestServer } from '../../kit/server.ts'

/** Returns what tests of workspaces do over and over, on the server that the file has when they do it. */
export function workspaceCalls(scene: () => TestServer) {
  /** A workspace of its own with one person in it. */
  const home = (role: 'owner' | 'admin' | 'member' = 'owner') => scene().addPerson(role, nextSlug())

  const slugOf = async (person: Person): Promise<string> =>
    (await scene().ok('/workspaces', { token: person.token })).slug

  const patch = (person: Person, body: unknown, path = '/workspaces') =>
    scene().call(`${path}/${person.workspaceId}`, { method: 'PATCH', body, token: person.token })

  return { home, slugOf, patch }
}

export const nextSlug = () => `home-${crypto.randomUUID()}`
