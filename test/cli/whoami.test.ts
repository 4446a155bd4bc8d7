import { afterEach, beforeEach, expect, test } from 'vitest'
import { refusal } from './api-server.ts'
import { useRealServer } from './real-server.ts'
import { makeServedHome, type ServedHome } from './served-home.ts'

const real = useRealServer()
let home: ServedHome
beforeEach(() => {
  home = makeServedHome()
})
afterEach(() => home.close())

async function whoami(env: Record<string, string>) {
  const { status, stdout, stderr } = await real.svc(['whoami'], { env })
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

test('whoever has a login token is told who they are, however many have the same role', async () => {
  const people = [await real.server.addPerson('member'), await real.server.addPerson('member')]
  for (const { token, userId, email } of people)
    expect(await whoami({ SVC_TOKEN: token })).toMatchObject({
      kind: 'person',
      person: { userId, name: 'member', email },
      role: 'member',
      workspace: { slug: 'main' },
    })
  expect(await whoami({})).toMatchObject({ person: { email: 'owner@localhost' }, role: 'owner' })
})

test('of an older server, which has no route for it, svc knows the only member of a role', async () => {
  await home.serve(({ path }) => {
    const own = { id: 'w-1', slug: 'one', name: 'One' }
    if (path === '/api/auth/me') return refusal(404, 'route_not_found')
    if (path === '/api/v1/user/workspaces') return { body: { data: [{ ...own, role: 'owner' }] } }
    if (path === '/api/v1/members')
      return { body: { data: [{ userId: 'usr_1', name: 'A', email: 'a@x', role: 'owner' }] } }
    return { body: own }
  })
  const env = { SVC_TOKEN: 'svc_pat_x', SVC_API_URL: home.api.url }
  const { stdout } = await home.svc(['whoami'], { env })
  expect(JSON.parse(stdout)).toMatchObject({ person: { userId: 'usr_1' }, role: 'owner' })
})
