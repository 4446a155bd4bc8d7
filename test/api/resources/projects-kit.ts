import type { PeopledServer } from '../../kit/people.ts'

/** An id that no project has. */
export const unknown = '00000000-0000-4000-8000-00000000000b'

/** Projects as a member makes and calls them, on the server that the file has when it does. */
export function projectCalls(scene: () => Pick<PeopledServer, 'server' | 'member'>) {
  const make = (body: Record<string, unknown> = {}, token = scene().member.token) =>
    scene().server.ok('/projects', { body: { name: 'Project', ...body }, token })

  const send = (method: string, path: string, { body, token }: { body?: unknown; token?: string } = {}) =>
    scene().server.call(`/projects/${path}`, {
      method,
      token: token ?? scene().member.token,
      ...(body === undefined ? {} : { body }),
    })

  return { make, send }
}
