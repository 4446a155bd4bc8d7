import { TestServer, type Person, type ServerOptions } from './server.ts'

export interface PeopledServer {
  server: TestServer
  admin: Person
  member: Person
  /** Another member. */
  other: Person
}

/** A server with people of every role in the owner's workspace. */
export async function startWithPeople(options: ServerOptions = {}): Promise<PeopledServer> {
  const server = await TestServer.start(options)
  return {
    server,
    admin: await server.addPerson('admin'),
    member: await server.addPerson('member'),
    other: await server.addPerson('member'),
  }
}
