;;; dape_session.el --- dape debugs a job, for tests  -*- lexical-binding: t -*-

;; emacs -batch -l dape_session.el -f session: attaches to PORT with the configuration of editors/dape/probing.el (CONFIGURATION),
;; breaks at LINE of FILE, shows VARIABLE as dape does, steps, and leaves.  Prints one line for each thing seen.

;;; Code:

(package-initialize)
(require 'dape)
(load (getenv "CONFIGURATION") nil t)
(setq dape-debug t)

(defun session--tell (format &rest values)
  (princ (concat (apply #'format format values) "\n")))

(defun session--until (what ask)
  "The first answer of ASK that is not nil; fails with WHAT after four minutes."
  (let ((end (+ (float-time) 240)) answer)
    (while (not (setq answer (ignore-errors (funcall ask))))
      (when (> (float-time) end)
        (session--tell "waited for %s" what)
        (kill-emacs 1))
      (accept-process-output nil 0.05))
    answer))

(defun session--stopped (line)
  "The connection, stopped at LINE with its frames known."
  (session--until (format "a stop at line %d" line)
                  (lambda ()
                    (let ((conn (dape--live-connection 'stopped t)))
                      (and conn (eql (plist-get (dape--current-stack-frame conn) :line) line) conn)))))

(defun session--value (conn name)
  "What dape shows of the variable NAME in the first scope."
  (let (scopes variables)
    (dape--scopes conn (dape--current-stack-frame conn) (lambda (&rest _) (setq scopes t)))
    (session--until "scopes" (lambda () scopes))
    (let ((scope (car (plist-get (dape--current-stack-frame conn) :scopes))))
      (dape--variables conn scope (lambda (&rest _) (setq variables t)))
      (session--until "variables" (lambda () variables))
      (plist-get (cl-find name (plist-get scope :variables)
                          :key (lambda (one) (plist-get one :name)) :test #'equal)
                 :value))))

(defun session ()
  "Attach, break, show a variable, evaluate, step, leave."
  (let ((file (getenv "FILE")) (line (string-to-number (getenv "LINE"))) conn)
    (find-file file)
    (goto-char (point-min))
    (forward-line (1- line))
    (dape-breakpoint-toggle)
    (dape (append (list 'port (string-to-number (getenv "PORT"))
                        :pathMappings (vector (list :localRoot (file-name-directory file) :remoteRoot (getenv "REMOTE"))))
                  (copy-tree (alist-get 'probing-connect dape-configs))))
    (setq conn (session--stopped line))
    (session--tell "stopped in %s" (plist-get (dape--current-stack-frame conn) :name))
    (session--tell "value %s" (session--value conn (getenv "VARIABLE")))
    (dape-evaluate-expression conn (getenv "EXPRESSION"))
    (session--until "the answer" (lambda ()
                                   (with-current-buffer "*dape-repl*"
                                     (save-excursion
                                       (goto-char (point-min))
                                       (search-forward (getenv "ANSWER") nil t)))))
    (session--tell "evaluated")
    (dape-next conn)
    (setq conn (session--stopped (1+ line)))
    (session--tell "stepped")
    (dape-disconnect-quit conn)
    (session--until "the end" (lambda () (not (dape--live-connections))))
    (session--tell "left")))

;;; dape_session.el ends here
