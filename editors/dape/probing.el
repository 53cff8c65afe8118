;;; probing.el --- debug live Python processes by dape  -*- lexical-binding: t -*-

;; Load this after dape; `M-x dape' then knows the configurations below.

;;; Code:

(require 'dape)
(require 'json)

(defgroup probing nil "Live Python processes." :group 'tools)

(defcustom probing-command "probing"
  "The command of Probing."
  :type 'string)

(defun probing-read-process ()
  "The id of a Python process that the user chooses."
  (let* ((text (with-output-to-string
                 (with-current-buffer standard-output
                   (process-file probing-command nil t nil "list" "--json"))))
         (table (mapcar (lambda (one)
                          (let-alist one
                            (cons (format "%d  %s%s" .pid
                                          (if (numberp .rank) (format "rank %d  " .rank) "")
                                          .command)
                                  .pid)))
                        (json-parse-string text :object-type 'alist :array-type 'list :null-object nil))))
    (cdr (assoc (completing-read "Python process: " table nil t) table))))

(dolist (config
         `((probing-attach
            modes (python-mode python-ts-mode)
            ensure dape-ensure-command
            command probing-command
            command-args ("dap")
            :type "probing"
            :request "attach"
            :processId probing-read-process)
           (probing-connect
            modes (python-mode python-ts-mode)
            host "127.0.0.1"
            port 9922
            :type "probing"
            :request "attach")
           (probing-launch
            modes (python-mode python-ts-mode)
            ensure dape-ensure-command
            command probing-command
            command-args ("dap")
            :type "probing"
            :request "launch"
            :cwd dape-cwd
            :program dape-buffer-default)))
  (setf (alist-get (car config) dape-configs) (cdr config)))

(provide 'probing)
;;; probing.el ends here
