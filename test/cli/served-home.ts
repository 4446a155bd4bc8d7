import { startApi, type Answer, type ApiServer, type Received } from './api-server.ts'
import { makeHome, type Home } from './run-svc.ts'

/** The run within which programs are started. */
export const runId = 'run_3nB7cW1yHsD5jK9q'

type Answering = (request: Received, before: number) => Answer

/** A home, and the API that its programs ask. */
export interface ServedHome extends Home {
  /** The one that was started last. */
  readonly api: ApiServer
  serve(answer: Answering, port?: number): Promise<ApiServer>
  /** Serves, and returns what the environment of a program within a run holds. */
  inRun(answer: Answering): Promise<Record<string, string>>
  /** Ends what was served and removes the home. */
  close(): Promise<void>
}

export function makeServedHome(): ServedHome {
  const home = makeHome()
  const served: ApiServer[] = []
  const serve = async (answer: Answering, port?: number) => {
    const api = await startApi(answer, port)
    served.push(api)
    return api
  }
  return {
    ...home,
    serve,
    get api() {
      const last = served.at(-1)
      if (last === undefined) throw new Error('nothing is served')
      return last
    },
    inRun: async (answer) => {
      const { url } = await serve(answer)
      return { SVC_TOKEN: 'the.run.token', SVC_API_URL: url, SVC_RUN_ID: runId }
    },
    close: async () => {
      await Promise.all(served.map((api) => api.close()))
      home.remove()
    },
  }
}
