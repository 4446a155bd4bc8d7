import { expect, test } from 'vitest'
import { namesCredential, redirectsTraffic, steersPrograms } from './env-names.ts'

const words = (text: string) => text.split(' ')

test('names that a loader, shell, interpreter, git or a harness reads are reserved', () => {
  for (const name of words(
    `PATH LD_PRELOAD DYLD_INSERT_LIBRARIES NODE_OPTIONS NODE_EXTRA_CA_CERTS PYTHONSTARTUP PYTHONHOME PERL5DB PERL5OPT RUBYOPT ZDOTDIR BASH_ENV BASH_FUNC_ls PROMPT_COMMAND GIT_EXTERNAL_DIFF GIT_SSH_COMMAND GIT_CONFIG_KEY_0 GIT_ASKPASS CLAUDE_CONFIG_DIR CODEX_HOME OPENCODE_CONFIG SVC_TOKEN SVC_API_KEY LD_AUDIT_TOKEN NPM_CONFIG_SCRIPT_SHELL XDG_CONFIG_HOME ld_preload SSL_CERT_FILE LESSOPEN PYTEST_ADDOPTS TAR_OPTIONS RIPGREP_CONFIG_PATH DOTNET_STARTUP_HOOKS CORECLR_PROFILER MAKEFILES RSYNC_RSH ERL_FLAGS RUSTC ANSIBLE_CONFIG TF_CLI_CONFIG_FILE TF_CLI_ARGS_plan DOCKER_CONFIG PSQLRC GH_PAGER`,
  ))
    expect([name, steersPrograms(name)]).toEqual([name, true])
})

test('credentials of tools are what secrets are for', () => {
  for (const name of words(
    `GITHUB_TOKEN GH_TOKEN GIT_TOKEN NPM_TOKEN NODE_AUTH_TOKEN ANTHROPIC_API_KEY CLAUDE_CODE_OAUTH_TOKEN CARGO_REGISTRY_TOKEN CURSOR_API_KEY AWS_SECRET_ACCESS_KEY DATABASE_URL PATHWAY DEPLOY_KEY HOMEPAGE`,
  ))
    expect([name, steersPrograms(name)]).toEqual([name, false])
})

test('a name that can only be that of a credential is recognised', () => {
  for (const name of words('GITHUB_TOKEN DEPLOY_KEY PASSWORD db_password AWS_SECRET_ACCESS_KEY CLIENT_SECRET'))
    expect([name, namesCredential(name)]).toEqual([name, true])
  for (const name of words('DATABASE_URL KEYS TOKEN_FILE PYTEST_ADDOPTS LD_AUDIT_TOKEN SVC_TOKEN MONKEY'))
    expect([name, namesCredential(name)]).toEqual([name, false])
})

test('a name that redirects traffic is recognised', () => {
  for (const name of [
    'ANTHROPIC_BASE_URL',
    'OPENAI_API_BASE',
    'HTTPS_PROXY',
    'http_proxy',
    'ALL_PROXY',
    'AWS_ENDPOINT_URL',
    'AWS_ENDPOINT_URL_S3',
    'OLLAMA_HOST',
  ])
    expect([name, redirectsTraffic(name)]).toEqual([name, true])
  for (const name of ['DATABASE_URL', 'BASE_URLS', 'PROXY_TOKEN', 'WEBHOOK_URL'])
    expect([name, redirectsTraffic(name)]).toEqual([name, false])
})
