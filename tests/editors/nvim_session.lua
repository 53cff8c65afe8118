-- nvim --headless -u NONE -c "luafile nvim_session.lua": what PART says, with the file of editors/nvim-dap (CONFIGURATION is its
-- folder).  "configured": without nvim-dap, whose parts that the file uses are stood in for: what it sets up.  "session": with
-- nvim-dap in NVIM_DAP: attaches to PORT, breaks at LINE of FILE, shows VARIABLE, steps, and leaves.  Prints a line for each thing.

local given = vim.env

local function tell(...)
  io.stdout:write(string.format(...), "\n")
end

-- The first true answer; four minutes without one ends everything.
local function await(what, ask)
  local answer
  local came = vim.wait(240000, function()
    answer = ask()
    return answer and true or false
  end, 20)
  if not came then
    tell("waited for %s", what)
    vim.cmd("cquit 1")
  end
  return answer
end

local function setup()
  package.path = given.CONFIGURATION .. "/?.lua;" .. package.path
  require("probing").setup({ command = given.PROBING })
end

local parts = {}

function parts.configured()
  local dap = { adapters = {}, configurations = {}, ABORT = {} }
  package.loaded["dap"] = dap
  package.loaded["dap.ui"] = {
    pick_one = function(items, _, label)
      for _, item in ipairs(items) do
        if item.pid == tonumber(given.PID) then
          tell("offered %s", label(item))
          return item
        end
      end
    end,
  }
  setup()
  local say = function(adapter)
    tell("adapter %s", vim.fn.json_encode(adapter))
  end
  for _, config in ipairs(dap.configurations.python) do
    if type(config.processId) == "function" then
      config.processId = config.processId()
    end
    tell("configuration %s", vim.fn.json_encode(config))
    dap.adapters[config.type](say, config)
  end
end

local function request(session, command, arguments)
  local body, failed
  session:request(command, arguments, function(err, response)
    body, failed = response, err
  end)
  await("the answer to " .. command, function()
    return body or failed
  end)
  return assert(body, failed and failed.message)
end

local function stopped(dap, line)
  return await("a stop at line " .. line, function()
    local session = dap.session()
    local frame = session and session.stopped_thread_id and session.current_frame
    return frame and frame.line == line and session
  end)
end

function parts.session()
  vim.opt.runtimepath:append(given.NVIM_DAP)
  local dap, line = require("dap"), tonumber(given.LINE)
  setup()
  vim.cmd("edit " .. given.FILE)
  vim.bo.filetype = "python"
  vim.api.nvim_win_set_cursor(0, { line, 0 })
  dap.toggle_breakpoint()
  for _, config in ipairs(dap.configurations.python) do
    if config.connect then
      config.connect.port = tonumber(given.PORT)
      dap.run(config)
    end
  end
  local session = stopped(dap, line)
  tell("stopped in %s", session.current_frame.name)
  local scope = request(session, "scopes", { frameId = session.current_frame.id }).scopes[1]
  for _, one in ipairs(request(session, "variables", { variablesReference = scope.variablesReference }).variables) do
    if one.name == given.VARIABLE then
      tell("value %s", one.value)
    end
  end
  dap.step_over()
  stopped(dap, line + 1)
  tell("stepped")
  dap.disconnect()
  await("the end", function()
    return not dap.session()
  end)
  tell("left")
end

local good, why = pcall(parts[given.PART])
if not good then
  tell("failed: %s", why)
  vim.cmd("cquit 1")
end
vim.cmd("qall!")
